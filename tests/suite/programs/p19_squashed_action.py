"""A tanh-squashed policy recovers the raw action with atanh; a saturated action is exactly 1."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N7 birth_op=aten::atanh kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=domain needs= fragile=no
import math
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class SquashedPolicy(nn.Module):
    def __init__(self, obs=6, act=2):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, 32), nn.Tanh())
        self.mean = nn.Linear(32, act)
        self.log_std = nn.Parameter(torch.zeros(act))

    def act(self, obs, noise):
        """Action in (-1, 1) from a given noise sample."""
        with torch.no_grad():
            mean = self.mean(self.trunk(obs))
            return torch.tanh(mean + self.log_std.exp() * noise)

    def log_prob(self, obs, action):
        raw = torch.atanh(action)  # BUG
        mean = self.mean(self.trunk(obs))
        z = (raw - mean) / self.log_std.exp()
        gauss = -0.5 * z ** 2 - self.log_std - 0.5 * math.log(2 * math.pi)
        return (gauss - torch.log(1 - action ** 2 + 1e-6)).sum(dim=-1)


def exploration_noise(episode, count):
    """Standard noise, with a strong push in every third episode to leave local optima."""
    noise = torch.randn(count, 2)
    if episode % 3 == 2:
        noise[0] = 25.0
    return noise


torch.manual_seed(19)
policy = SquashedPolicy().to(DEVICE)
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
for episode in range(4):
    obs = torch.randn(16, 6).to(DEVICE)
    action = policy.act(obs, exploration_noise(episode, 16).to(DEVICE))
    advantage = 1.0 - action.abs().sum(dim=-1)
    loss = -(advantage * policy.log_prob(obs, action)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("policy loss %.4f" % loss.item())
