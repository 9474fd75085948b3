"""Bodies that are moved in small steps of time, into slices of a path, in place and as a value that goes along."""
import torch
from torch import nn

torch.manual_seed(0)
force = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(force.parameters(), lr=0.01)
for step in range(24):
    push = torch.randn(32, 16, 2)
    with torch.no_grad():
        path, speed = torch.zeros(33, 16, 2), torch.zeros(33, 16, 2)
        path[0] = torch.randn(16, 2)
        for t in range(32):
            speed[t + 1] = speed[t] + 0.1 * (push[t] - path[t])
            path[t + 1] = path[t] + 0.1 * speed[t + 1]
        place, there = path[0].clone(), torch.zeros(32, 16, 2)
        for t in range(32):
            place += 0.1 * (push[t] - place.sin())
            there[t] = place
    at, places = path[0], []
    for t in range(32):
        at = at + 0.1 * force(at + push[t])
        places.append(at)
    loss = (torch.stack(places) - path[1:] + there).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
