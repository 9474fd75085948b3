"""Soft actor critic for torques up to 2: the squash's correction is taken of the action after it was scaled."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N5 birth_op=aten::log kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=squashed_gaussian needs= fragile=no
# label: thread=cpnota/autonomous-learning-library#139 uses= fix_kind=reorder
# fix: the correction uses tanh of the raw sample, and the scale comes after it; the log probability is part of the loss
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
TORQUE = 2.0


class SquashedPolicy(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(observations, 64), nn.ReLU(), nn.Linear(64, 2 * actions))

    def forward(self, observation):
        mean, log_std = self.net(observation).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = normal.rsample()
        action = torch.tanh(raw) * TORQUE
        squashed = torch.tanh(raw) if FIXED else action
        correction = torch.log(1 - squashed.pow(2) + 1e-6)  # BUG
        return action, (normal.log_prob(raw) - correction).sum(dim=-1)


class Critic(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(observations + actions, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, observation, action):
        return self.net(torch.cat([observation, action], dim=-1)).squeeze(-1)


torch.manual_seed(5)
policy, critic = SquashedPolicy(5, 1), Critic(5, 1)
policy_optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for update in range(4):
    observation = torch.randn(32, 5)
    with torch.no_grad():
        action = TORQUE * (2 * torch.rand(32, 1) - 1)
        reward = -(observation[:, :1] - action).square().squeeze(-1)
    critic_loss = (critic(observation, action) - reward).square().mean()
    action, log_prob = policy(observation)
    policy_loss = (0.2 * log_prob - critic(observation, action)).mean()
    policy_optimizer.zero_grad()
    policy_loss.backward()
    policy_optimizer.step()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
print(f"critic {critic_loss.item():.3f}, policy {policy_loss.item():.3f}")
