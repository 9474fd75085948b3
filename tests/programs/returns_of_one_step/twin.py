"""A policy and a value of one state: the returns are normalised by their deviation, and episodes have several steps."""
import torch
from torch import nn
from torch.nn import functional as F


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.policy, self.value = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, state):
        hidden = F.relu(self.body(state))
        return F.log_softmax(self.policy(hidden), dim=-1), self.value(hidden)


def episode(agent, optimizer, steps):
    taken = []
    for _ in range(steps):
        scores, value = agent(torch.randn(4))
        taken.append((scores[torch.multinomial(scores.detach().exp(), 1)], value))
    total, returns = 0.0, []
    for _ in range(steps):
        total = 1.0 + 0.99 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy_losses, value_losses = [], []
    for (score, value), wanted in zip(taken, returns):
        policy_losses.append(-score * (wanted - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([wanted])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(0)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
for steps in (9, 12, 2):
    print(episode(agent, optimizer, steps))
