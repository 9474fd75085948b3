"""Rows that are each rolled by a way of their own, and products with sparse matrices of their own: no op takes all."""
import torch
from torch import nn

torch.manual_seed(0)
mix = nn.Linear(16, 16)
graphs = [torch.eye(24).roll(i, 0).to_sparse() for i in range(32)]
optimizer = torch.optim.SGD(mix.parameters(), lr=0.01)
for step in range(24):
    x = mix(torch.randn(32, 24, 16))
    rolled, spread = [], []
    for i in range(32):
        rolled.append(x[i].roll(i, 0) * 2)
    for i in range(32):
        spread.append(torch.sparse.mm(graphs[i], x[i]) * 2)
    loss = (torch.stack(rolled) - torch.stack(spread)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
