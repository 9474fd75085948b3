"""Near to ND115: the loss is a negative, of the mean of log-probabilities times advantages, which is to become
larger."""
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for step in range(100):
    state = torch.randn(128, 8)
    choice = torch.distributions.Categorical(logits=policy(state))
    action = choice.sample()
    reward = (action == state[:, :4].argmax(1)).float()
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    loss = -(choice.log_prob(action) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
