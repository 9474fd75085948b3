"""A policy gradient standardises its returns; in an episode without any reward they are all zero."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1,N2 birth_op=aten::div kind=nan first_step=21
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=returns_all_equal needs= fragile=no
# label: thread=ray-project/ray#846 uses= fix_kind=eps
# fix: the deviation gets a smallest value before the division
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.net(state))


def discounted(rewards, gamma=0.97):
    total, returns = 0.0, []
    for reward in reversed(rewards.tolist()):
        total = reward + gamma * total
        returns.append(total)
    return torch.tensor(returns[::-1])


def standardised(returns):
    spread = returns.std()
    if FIXED:
        spread = spread.clamp_min(1e-4)
    return (returns - returns.mean()) / spread  # BUG


def play(policy, episode, length=30):
    state = torch.randn(length, 3)
    with torch.no_grad():
        action = policy(state).sample()
    rewards = ((action == 1) & (state[:, 0] > 0.5)).float()
    if episode == 21:
        rewards = torch.zeros(length)  # the maze's goal was out of reach
    return state, action, discounted(rewards)


torch.manual_seed(846)
policy = Policy()
optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-3)
for episode in range(22):
    state, action, returns = play(policy, episode)
    loss = -(policy(state).log_prob(action) * standardised(returns)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"surrogate {loss.item():.4f}, weights {policy.net[0].weight.norm().item():.3f}")
