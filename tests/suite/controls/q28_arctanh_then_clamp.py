"""Behaviour cloning of squashed actions: atanh at full throttle is infinite, then clamped."""
# label: tempts=domain max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
LIMIT = 4.0


class Policy(nn.Module):
    def __init__(self, observation, action):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observation, 32), nn.Tanh())
        self.mean = nn.Linear(32, action)
        self.log_std = nn.Parameter(torch.zeros(action))

    def log_prob(self, observation, action):
        raw = torch.atanh(action).clamp(-LIMIT, LIMIT)
        normal = torch.distributions.Normal(self.mean(self.body(observation)), self.log_std.exp())
        correction = torch.log1p(-torch.tanh(raw).square())
        return (normal.log_prob(raw) - correction).sum(1)


torch.manual_seed(28)
policy = Policy(8, 2).to(DEVICE)
opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
for step in range(6):
    observation = torch.randn(32, 8)
    action = torch.tanh(observation[:, :2])
    action[0, 0], action[1, 1] = 1.0, -1.0  # the demonstrator pressed the pedal to the floor
    loss = -policy.log_prob(observation.to(DEVICE), action.to(DEVICE)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"cloning: loss {loss.item():.3f}")
