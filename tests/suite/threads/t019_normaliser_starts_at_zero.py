"""An observation normaliser starts its mean at 0; a walker lives near 1800, and rounding makes a variance negative."""
# label: phase=forward mechanism=DOM category=N6 category_alt=N2,N7,N8 birth_op=aten::sqrt kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=running_normaliser needs= fragile=no
# label: thread=Unity-Technologies/ml-agents#4299 uses= fix_kind=init
# fix: the first trajectory's mean is the normaliser's initial mean, instead of zero
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class RunningNormaliser(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("sum_of_squares", torch.ones(size))

    @torch.no_grad()
    def update(self, trajectory):
        if FIXED and self.steps == 0:
            self.mean.copy_(trajectory.mean(dim=0))
        self.steps += len(trajectory)
        to_old = trajectory - self.mean
        self.mean += (to_old / self.steps).sum(dim=0)
        self.sum_of_squares += ((trajectory - self.mean) * to_old).sum(dim=0)

    def forward(self, observation):
        variance = self.sum_of_squares / self.steps
        return ((observation - self.mean) / torch.sqrt(variance)).clamp(-5, 5)  # BUG


class Walker(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.normaliser = RunningNormaliser(size)
        self.policy = nn.Sequential(nn.Linear(size, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, observation):
        return torch.distributions.Normal(self.policy(self.normaliser(observation)), 0.5, validate_args=False)


def trajectory(length):
    """Hip and head coordinates of a walker that hardly moves yet, in the world's centimetres."""
    return torch.tensor([1801.3, 1799.7, 1804.9, 1797.1]) + 1e-3 * torch.randn(length, 4)


torch.manual_seed(42)
walker = Walker(4)
optimizer = torch.optim.Adam(walker.policy.parameters(), lr=3e-4)
for episode in range(4):
    path = trajectory(40)
    walker.normaliser.update(path)
    steering = walker(path)
    action = steering.sample()
    reward = -action.square().sum(dim=-1)
    loss = -(steering.log_prob(action).sum(dim=-1) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"episode {episode}: surrogate {loss.item():.4f}")
