"""A critic with a gradient penalty: where the slope is zero, eps keeps the root safe."""
# label: tempts=slope max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def slope_norm(critic, points, eps=1e-8):
    points = points.detach().requires_grad_(True)
    slope, = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    return (slope.square().sum(1) + eps).sqrt()


def critic_loss(critic, real, fake):
    distance = critic(fake).mean() - critic(real).mean()
    penalty = (slope_norm(critic, real) - 1.0).square().mean()
    return distance + 10.0 * penalty


torch.manual_seed(24)
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
generator = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
critic, generator = critic.to(DEVICE), generator.to(DEVICE)
nn.init.zeros_(critic[0].bias)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
for step in range(5):
    real = torch.randn(16, 2)
    if step == 0:
        real[0] = 0.0  # on the kink of every unit: the slope is exactly zero
    real = real.to(DEVICE)
    noise = torch.randn(16, 3).to(DEVICE)
    loss_c = critic_loss(critic, real, generator(noise).detach())
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    loss_g = -critic(generator(noise)).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
print(f"penalty: critic {loss_c.item():.3f}, generator {loss_g.item():.3f}")
