"""PPO in half precision guards the logarithm of the deviation by 1e-8, which is zero there, once it is confident."""
# label: phase=forward mechanism=DOM category=N8 category_alt=N4,N2,N5 birth_op=aten::log kind=-inf first_step=
# label: severity=error loss_stays_finite=no dtype=fp16 model=policy family=half_eps needs= fragile=no
# label: thread=kscalelabs/minppo#19 uses= fix_kind=eps
# fix: the guard is raised to a number that half precision can hold
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
EPS = 1e-4 if FIXED else 1e-8


class HalfPolicy(nn.Module):
    """Master weights in float32, the forward pass in half precision."""

    def __init__(self, observations=4):
        super().__init__()
        self.first, self.second = nn.Linear(observations, 16), nn.Linear(16, 1)
        self.raw_std = nn.Parameter(torch.tensor(-6.0))

    def forward(self, observation):
        hidden = torch.tanh(self.first(observation))
        return self.second(hidden).squeeze(-1).half(), nn.functional.softplus(self.raw_std.half())


def log_prob(action, mean, std):
    scaled = (action - mean) / (std + 1e-2)
    return -0.5 * scaled.square() - torch.log(std + EPS)  # BUG


torch.manual_seed(19)
policy = HalfPolicy()
optimizer = torch.optim.SGD(policy.parameters(), lr=0.2)
for step in range(80):
    observation = torch.randn(64, 4)
    mean, std = policy(observation)
    with torch.no_grad():
        action = mean + std * torch.randn(64).half()
        reward = -(action - observation[:, 0].half()).abs()
        advantage = (reward - reward.float().mean().half()).clamp(-1, 1)
    surrogate = -(log_prob(action, mean, std) * advantage).float().mean()
    fit = (mean.float() - observation[:, 0]).square().mean()
    loss = fit + 0.01 * surrogate + 1.0 * policy.raw_std  # a bonus for being sure
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
print(f"loss {loss.item():.3f}, raw deviation {policy.raw_std.item():.2f}")
