"""A recurrent cell that goes from time to time: each round needs what the one before has computed."""
import torch
from torch import nn

torch.manual_seed(0)
cell, out = nn.GRUCell(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.05)
for step in range(24):
    series = torch.randn(16, 32, 8)
    state = torch.zeros(16, 16)
    for time in range(32):
        state = cell(series[:, time], state)
    loss = (out(state).squeeze(-1) - series.mean((1, 2))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
