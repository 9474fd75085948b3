"""Online normaliser, E[x^2] - E[x]^2 from averages of different speed: negative variance."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N7,N5 birth_op=aten::sqrt kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=domain needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class RunningNorm(nn.Module):
    """Normalises observations with running first and second moments."""

    def __init__(self, size, mean_momentum=0.5, square_momentum=0.05, eps=1e-5):
        super().__init__()
        self.mean_momentum, self.square_momentum, self.eps = mean_momentum, square_momentum, eps
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("square", torch.ones(size))

    def forward(self, x):
        if self.training:
            self.mean.lerp_(x.mean(dim=0), self.mean_momentum)
            self.square.lerp_(x.square().mean(dim=0), self.square_momentum)
        variance = self.square - self.mean.square()
        return (x - self.mean) / torch.sqrt(variance + self.eps)  # BUG


class ValueNet(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = RunningNorm(size)
        self.head = nn.Sequential(nn.Linear(size, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, obs):
        return self.head(self.norm(obs)).squeeze(-1)


def observations(level, count=32):
    """Observations around a level; the signs alternate, so that the mean is the level itself."""
    wave = torch.where(torch.arange(count) % 2 == 0, 0.5, -0.5)
    return level + wave[:, None].expand(count, 3)


torch.manual_seed(22)
net = ValueNet(3).to(DEVICE)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for level in (0.0, 0.0, 0.0, 10.0, 10.0):  # the agent enters a new room
    obs = observations(level).to(DEVICE)
    loss = (net(obs) - 1.0).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("value loss %.4f" % loss.item())
