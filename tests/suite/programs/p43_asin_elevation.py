"""A sun tracker predicts an elevation as asin(tanh(h)); raw sensor counts saturate tanh."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::rsqrt kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=slope needs= fragile=no
import math
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class ElevationHead(nn.Module):
    """The angle of the sun above the horizon, in radians."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 1, bias=False)
        nn.init.constant_(self.linear.weight, 0.1)

    def forward(self, hidden):
        height = torch.tanh(self.linear(hidden))
        return torch.asin(height).squeeze(1)  # BUG


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 8)
        nn.init.uniform_(self.mix.weight, 0.0, 0.2)
        self.head = ElevationHead(8)

    def forward(self, light):
        return self.head(torch.relu(self.mix(light)))


torch.manual_seed(43)
light = torch.rand(5, 10, 4)
elevation = light.mean(dim=2) * math.pi / 3.0
light[2, 6] = 4095.0  # a logger that was not calibrated sends counts

tracker = Tracker().to(DEVICE)
opt = torch.optim.Adam(tracker.parameters(), lr=1e-3)
for x, y in zip(light.to(DEVICE), elevation.to(DEVICE)):
    opt.zero_grad()
    loss = torch.nn.functional.smooth_l1_loss(tracker(x), y)
    loss.backward()
    opt.step()
print(f"elevation: last loss {loss.item():.4f}")
