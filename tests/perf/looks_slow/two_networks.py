"""A generator and a discriminator, with detach() where it belongs, and a penalty on gradients."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64))
critic = nn.Sequential(nn.Linear(64, 128), nn.Softplus(), nn.Linear(128, 1))
first = torch.optim.Adam(generator.parameters(), lr=1e-4, fused=True)
second = torch.optim.Adam(critic.parameters(), lr=1e-4, fused=True)
for step in range(24):
    real, fake = torch.randn(64, 64), generator(torch.randn(64, 16))
    mixed = (0.5 * real + 0.5 * fake).detach().requires_grad_()
    slope, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean() + slope.square().mean()
    second.zero_grad()
    loss.backward()
    second.step()
    critic.requires_grad_(False)
    first.zero_grad()
    F.softplus(-critic(fake)).mean().backward()
    first.step()
    critic.requires_grad_(True)
