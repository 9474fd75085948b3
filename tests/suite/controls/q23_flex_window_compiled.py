"""Captured attention with a flexible sliding window: keys outside the window get minus infinity."""
# label: tempts=compile max_severity=none dtype=fp32 needs=compile
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
BATCH, LENGTH, WIDTH, WINDOW = 4, 24, 16, 6


def window(query, key):
    return (query >= key) & (query - key < WINDOW)


@torch.compile(backend="aot_eager", fullgraph=True)
def attend(q, k, v):
    position = torch.arange(q.shape[1], device=q.device)
    visible = window(position[:, None], position[None, :])
    score = q @ k.transpose(1, 2) / q.shape[2] ** 0.5
    return torch.where(visible, score, float("-inf")).softmax(-1) @ v


torch.manual_seed(23)
project = nn.Linear(WIDTH, 3 * WIDTH).to(DEVICE)
head = nn.Linear(WIDTH, 5).to(DEVICE)
opt = torch.optim.Adam([*project.parameters(), *head.parameters()], lr=1e-2)
for step in range(4):
    x = torch.randn(BATCH, LENGTH, WIDTH).to(DEVICE)
    label = torch.randint(5, (BATCH, LENGTH)).to(DEVICE)
    hidden = attend(*project(x).chunk(3, dim=2))
    loss = F.cross_entropy(head(hidden).flatten(0, 1), label.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"flex window: loss {loss.item():.3f}")
