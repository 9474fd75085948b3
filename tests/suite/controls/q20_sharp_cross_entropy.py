"""Contrastive learning at temperature 1e-4: logits of ten thousand, a fused and stable loss."""
# label: tempts=temperature max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
TEMPERATURE = 1e-4


def contrastive(first, second):
    first, second = F.normalize(first, dim=1), F.normalize(second, dim=1)
    logits = first @ second.t() / TEMPERATURE
    same = torch.arange(len(first), device=first.device)
    return (F.cross_entropy(logits, same) + F.cross_entropy(logits.t(), same)) / 2


torch.manual_seed(20)
tower_a = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8)).to(DEVICE)
tower_b = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8)).to(DEVICE)
params = [*tower_a.parameters(), *tower_b.parameters()]
opt = torch.optim.SGD(params, lr=1e-2)
for step in range(6):
    view = torch.randn(24, 10)
    other = view + 0.05 * torch.randn(24, 10)
    loss = contrastive(tower_a(view.to(DEVICE)), tower_b(other.to(DEVICE)))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
print(f"sharp contrast: loss {loss.item():.1f}")
