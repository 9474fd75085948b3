"""WGAN-GP: all of the critic's rectifiers are off at a point between, and the norm of a zero slope has no slope."""
# label: phase=backward mechanism=SING category=N3 category_alt=N4,N2 birth_op=aten::div,aten::mul kind=-inf,+inf,nan first_step=26
# label: severity=error loss_stays_finite=no dtype=fp32 model=gan family=gan_gradient_penalty needs= fragile=no
# label: thread=keras-team/keras-io#2364 uses= fix_kind=eps
# fix: a small number is added to the sum of squares under the root of the gradient norm
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Critic(nn.Module):
    """Looks at counts; far from all data none of its units is on."""

    def __init__(self, features=2, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


def gradient_penalty(critic, real, fake):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    squares = slope.square().sum(dim=1)
    norm = torch.sqrt(squares + 1e-12 if FIXED else squares)  # BUG
    return (norm - 1).square().mean()


def dead_zone(critic):
    """Weight clipping of an older experiment: from here on the first layer only takes positive evidence."""
    with torch.no_grad():
        critic.net[0].weight.clamp_(min=0.0)
        critic.net[0].bias.clamp_(max=0.0)


torch.manual_seed(126)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = Critic()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
for step in range(36):
    real = torch.randn(64, 2) * 0.3 + torch.tensor([2.0, 0.0]) * (torch.rand(64, 1) < 0.5)
    fake = generator(torch.randn(64, 4)).detach()
    if step == 26:
        dead_zone(critic)
    loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
    optimizer_c.zero_grad()
    loss.backward()
    optimizer_c.step()
    if step % 4 == 3:
        generator_loss = -critic(generator(torch.randn(64, 4))).mean()
        optimizer_g.zero_grad()
        generator_loss.backward()
        optimizer_g.step()
print(f"critic {loss.item():.4f}, generator {generator_loss.item():.4f}")
