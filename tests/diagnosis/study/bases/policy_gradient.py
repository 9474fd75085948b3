"""REINFORCE: a policy that steers a point to a goal on a line, learned from whole episodes, by Adam."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=120)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)
EPISODES, LENGTH = 48, 10


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 32)
        self.second = nn.Linear(32, 32)
        self.choice = nn.Linear(32, 3)

    def forward(self, state):
        x = torch.tanh(self.first(state))
        x = torch.tanh(self.second(x))
        return self.choice(x)


def episodes(policy, count):
    """Log-probabilities of the choices and rewards, [LENGTH, count] each."""
    place, goal = 4 * torch.rand(count) - 2, 4 * torch.rand(count) - 2
    logs, rewards = [], []
    for _ in range(LENGTH):
        state = torch.stack([place, goal], 1)
        choices = torch.distributions.Categorical(logits=policy(state))
        action = choices.sample()
        logs.append(choices.log_prob(action))
        place = place + 0.4 * (action - 1)
        reward = -(place - goal).abs()
        rewards.append(reward)
    return torch.stack(logs), torch.stack(rewards)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for step in range(args.steps):
    logs, rewards = episodes(policy, EPISODES)
    returns = rewards.flip(0).cumsum(0).flip(0)
    advantage = (returns - returns.mean(1, keepdim=True)) / (returns.std() + 1e-6)
    loss = -(logs * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    _, rewards = episodes(policy, 400)
print(f"return {rewards.mean().item():.4f}")
