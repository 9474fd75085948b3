"""Particle fluxes in SI units: every input is a denormal float until the model rescales it."""
# label: tempts=denormal max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
UNIT = 2.0 ** 66  # twice: a power of two is exact


class FluxNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 24), nn.SiLU(), nn.Linear(24, 1))

    def forward(self, flux):
        return self.layers(flux * UNIT * UNIT)[:, 0]


def measure(count):
    """Fluxes between 1e-41 and 1e-39, all below the smallest normal float of 1.2e-38."""
    size = 0.1 + 3.0 * torch.rand(count, 4)
    flux = size * 2.0 ** -66 * 2.0 ** -66
    return flux, size.prod(1).sqrt()


torch.manual_seed(35)
model = FluxNet().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(6):
    flux, target = measure(32)
    flux, target = flux.to(DEVICE), target.to(DEVICE)
    loss = nn.functional.huber_loss(model(flux), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"fluxes: largest {flux.max().item():.1e}, loss {loss.item():.3f}")
