"""Warm-up and cosine decay per parameter group, where a group without warm-up divides by zero."""
# label: tempts=schedule max_severity=none dtype=fp32 needs=
import math
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
STEPS = 8
BASE = torch.tensor([1e-2, 1e-3])
WARM_UP = torch.tensor([3.0, 0.0])  # the head starts at full rate


def learning_rates(step):
    warm = ((step + 1) / WARM_UP).clamp(max=1.0)
    cosine = 0.5 * (1.0 + math.cos(math.pi * step / (STEPS - 1)))
    return (BASE * warm * cosine).tolist()


torch.manual_seed(17)
body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
head = nn.Linear(24, 2)
body, head = body.to(DEVICE), head.to(DEVICE)
opt = torch.optim.AdamW([{"params": body.parameters()}, {"params": head.parameters()}])
x = torch.randn(64, 6)
y = (x.sum(1) > 0).long()
x, y = x.to(DEVICE), y.to(DEVICE)
for step in range(STEPS):
    for group, rate in zip(opt.param_groups, learning_rates(step)):
        group["lr"] = rate
    loss = nn.functional.cross_entropy(head(body(x)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"cosine: loss {loss.item():.3f}, last rates {learning_rates(STEPS - 1)}")
