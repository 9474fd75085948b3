"""A policy that keeps its observations as Python lists and makes a tensor of all of them in each update."""
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
seen = [[random.gauss(0, 1) for _ in range(48)] for _ in range(256)]
policy = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
for step in range(60):
    states = torch.tensor(seen, dtype=torch.float32)  # SLOW
    loss = -policy(states).log_softmax(-1)[:, step % 4].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
