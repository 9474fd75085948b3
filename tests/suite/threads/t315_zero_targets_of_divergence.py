"""A student is fitted to soft labels by a hand-written divergence, p (log p - log q); some labels are exactly zero."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2 birth_op=aten::log kind=-inf first_step=20
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=zero_targets_divergence needs= fragile=no
# label: thread=google-deepmind/optax#473 uses= fix_kind=where
# fix: entries whose target is zero contribute zero
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def divergence(log_predictions, targets):
    if FIXED:
        safe = torch.where(targets > 0, targets, torch.ones_like(targets))
        entries = torch.where(targets > 0, targets * (safe.log() - log_predictions), torch.zeros_like(targets))
    else:
        entries = targets * (targets.log() - log_predictions)  # BUG
    return entries.sum(dim=-1).mean()


def soft_labels(x, sharpness):
    """Votes of annotators, as shares; few of them agree on nothing when they are careless."""
    scores = torch.stack([x[:, 0], x[:, 1], x[:, 0] * x[:, 1], -x[:, 2]], dim=1)
    votes = (scores * sharpness).softmax(dim=-1)
    return (votes * 20).round().clamp(min=0 if sharpness > 1 else 1) / 20


torch.manual_seed(473)
student = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for step in range(24):
    x = torch.randn(32, 3)
    targets = soft_labels(x, sharpness=4.0 if step >= 20 else 0.3)
    targets = targets / targets.sum(dim=-1, keepdim=True)
    loss = divergence(student(x).log_softmax(dim=-1), targets)  # BUG-ALT
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
