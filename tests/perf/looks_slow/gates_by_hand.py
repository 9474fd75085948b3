"""An LSTM written out: what it makes of its inputs is computed at once, the rest needs the time before."""
import torch
from torch import nn

torch.manual_seed(0)
read, keep, out = nn.Linear(8, 64), nn.Linear(16, 64, bias=False), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*read.parameters(), *keep.parameters(), *out.parameters()], lr=0.05)
for step in range(24):
    series = torch.randn(32, 40, 8)
    gates = read(series)
    state = cell = torch.zeros(32, 16)
    states = []
    for time in range(40):
        i, f, o, g = (gates[:, time] + keep(state)).chunk(4, -1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        state = torch.sigmoid(o) * torch.tanh(cell)
        states.append(state)
    decayed, trace = torch.zeros(32, 16), torch.zeros(40, 32, 16)
    for time in range(40):
        decayed = torch.add(series[:, time].repeat(1, 2), decayed, alpha=0.9)
        trace[time] = decayed
    loss = (out(torch.stack(states, 1)).squeeze(-1) - trace.mean(-1).t()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
