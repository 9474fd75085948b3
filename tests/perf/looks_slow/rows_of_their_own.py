"""Rows that are prepared one by one before the model reads its first parameter: each is cut and changed as it falls."""
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
sounds = torch.randn(64, 400)
model = nn.Sequential(nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(24):
    rows = []
    for sound in range(64):
        at = random.randint(0, 144)
        row = sounds[sound, at:at + 256] * random.uniform(0.5, 1.5)
        if random.random() < 0.5:
            row = row.flip(0)
        if random.random() < 0.3:
            row = row + 0.1 * torch.randn(256)
        for _ in range(random.randint(0, 2)):
            first = random.randint(0, 200)
            row[first:first + 50] = 0
        rows.append(row - row.mean())
    x = torch.stack(rows)
    loss = (model(x).squeeze(-1) - x.std(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
