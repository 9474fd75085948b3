"""A cache of half-precision activations, saturated on purpose at exactly 65504."""
# label: tempts=headroom max_severity=none dtype=fp16 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
LARGEST = torch.finfo(torch.float16).max


def to_cache(activation):
    """A saturating cast: what half cannot hold becomes its largest value, not infinity."""
    return activation.clamp(-LARGEST, LARGEST).half()


def from_cache(cached):
    return cached.float() / LARGEST


torch.manual_seed(36)
teacher = nn.Linear(6, 10).to(DEVICE).requires_grad_(False)
student = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 10)).to(DEVICE)
opt = torch.optim.AdamW(student.parameters(), lr=1e-2)
full = 0
for step in range(6):
    x = torch.randn(32, 6).to(DEVICE)
    cached = to_cache(6e4 * teacher(x))
    full += int((cached.abs() == LARGEST).sum())
    loss = nn.functional.mse_loss(student(x), from_cache(cached))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"saturating cache: {full} values at {LARGEST:.0f}, loss {loss.item():.3f}")
