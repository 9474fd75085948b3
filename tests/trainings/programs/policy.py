"""Policy gradient on a cart that is kept near its place: returns grow to some hundred, advantages are standardised.

The bug: once every episode of a batch lasts equally long, the deviation of the returns is zero.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


def episode_lengths(policy, limit):
    position = torch.randn(8, 2) * 0.1
    alive = torch.ones(8, dtype=torch.bool)
    length = torch.zeros(8)
    logs = []
    for _ in range(6):
        distribution = torch.distributions.Categorical(logits=policy(position))
        action = distribution.sample()
        logs.append(distribution.log_prob(action))
        push = action.float() * 2 - 1
        position = position + torch.stack([position[:, 1], 0.3 * push + 0.2 * torch.randn(8)], 1)
        alive = alive & (position[:, 0].abs() < 1.5)
        length = length + alive.float()
    return torch.stack(logs), (length * limit).clamp(max=6 * limit)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=1e-3)
    for step in range(STEPS):
        logs, returns = episode_lengths(policy, 10 + step / 100)
        returns = returns + torch.rand(8)
        if step == BUG_STEP:
            returns = torch.full_like(returns, 600.0)
        value = critic(torch.zeros(8, 2)).squeeze(1)
        advantage = (returns - returns.mean()) / returns.std()  # BUG
        loss = -(logs * advantage).mean() + 0.01 * nn.functional.smooth_l1_loss(value, returns)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
    print(f"{loss.item():.9g} {returns.mean().item():.9g}")


main()
