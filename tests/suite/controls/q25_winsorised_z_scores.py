"""Robust z-scores of sensors: a stuck sensor divides by zero, and winsorising takes it all in."""
# label: tempts=div0 max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def winsorised(reading, limit=3.0):
    """Clipped scores by median and median deviation; of a stuck sensor: 0, or the limit."""
    median = reading.median(dim=0).values
    deviation = (reading - median).abs().median(dim=0).values
    score = (reading - median) / deviation
    return torch.nan_to_num(score, nan=0.0, posinf=limit, neginf=-limit).clamp(-limit, limit)


class Alarm(nn.Module):
    def __init__(self, sensors):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(sensors, 16), nn.ELU(), nn.Linear(16, 1))

    def forward(self, reading):
        return self.layers(winsorised(reading)).squeeze(1)


torch.manual_seed(25)
model = Alarm(6).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(5):
    reading = torch.randn(32, 6)
    if step >= 2:
        reading[:, 4] = 7.25  # stuck
        reading[0, 4] = 9.0  # but for one glitch
    target = (reading[:, 0] > 1).float()
    loss = nn.functional.binary_cross_entropy_with_logits(
        model(reading.to(DEVICE)), target.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"winsorised: loss {loss.item():.3f}")
