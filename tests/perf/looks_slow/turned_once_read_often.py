"""A weight that is turned and copied once for the products of all times."""
import torch
from torch import nn

torch.manual_seed(0)
weight = nn.Parameter(torch.randn(256, 256) / 32)
optimizer = torch.optim.SGD([weight], lr=0.01)
for step in range(24):
    state, turned = torch.randn(4, 256), weight.t().contiguous()
    for time in range(6):
        state = torch.tanh(state @ turned)
    loss = state.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
