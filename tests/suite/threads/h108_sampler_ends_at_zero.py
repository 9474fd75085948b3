"""A Karras sampler's list of noise levels ends with 0, and each step divides by the level that it comes from."""
# label: tempts=zero-division max_severity=none dtype=fp32 needs= family=diffusion_last_sigma
# label: thread=crowsonkb/k-diffusion#23 uses=
# why: no step starts from level 0, so nothing is divided by it; the trailing 0 is what makes the last step denoise
# why: fully
import torch
from torch import nn

DATA_DEVIATION = 0.5


def karras_levels(count, low=0.02, high=10.0, rho=7.0):
    ramp = torch.linspace(0, 1, count)
    levels = (high ** (1 / rho) + ramp * (low ** (1 / rho) - high ** (1 / rho))) ** rho
    return torch.cat([levels, torch.zeros(1)])


class Preconditioned(nn.Module):
    """The denoiser of Karras and others: skip, output and input scales by noise level."""

    def __init__(self, features=2, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features + 1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, features))

    def forward(self, x, level):
        level = level.expand(len(x))[:, None]
        spread = (level.square() + DATA_DEVIATION**2).sqrt()
        inner = self.net(torch.cat([x / spread, level.log() / 4], dim=1))
        return DATA_DEVIATION**2 / spread**2 * x + level * DATA_DEVIATION / spread * inner


@torch.no_grad()
def heun(model, x, levels):
    for here, there in zip(levels, levels[1:]):
        slope = (x - model(x, here)) / here
        moved = x + (there - here) * slope
        if there > 0:
            slope = (slope + (moved - model(moved, there)) / there) / 2
            moved = x + (there - here) * slope
        x = moved
    return x


torch.manual_seed(108)
model = Preconditioned()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(80):
    angle = torch.rand(64, 1) * 6.2832
    clean = 0.7 * torch.cat([angle.cos(), angle.sin()], dim=1)
    level = (torch.randn(64) * 1.2 - 1.2).exp()
    denoised = model(clean + level[:, None] * torch.randn_like(clean), level)
    weight = (level.square() + DATA_DEVIATION**2) / (level * DATA_DEVIATION).square()
    loss = (weight[:, None] * (denoised - clean).square()).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
levels = karras_levels(12)
sample = heun(model, levels[0] * torch.randn(128, 2), levels)
print(f"loss {loss.item():.3f}, mean radius {sample.norm(dim=1).mean().item():.3f}")
