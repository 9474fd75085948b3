"""The policy-gradient loop of victim.py with the logarithm of the ratio clamped before exp."""
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
states = torch.randn(5, 32, 4)
actions = torch.randint(0, 3, (5, 32, 1))
advantages = torch.randn(5, 32)
recorded = torch.full((5, 32), -1.1)
recorded[2, 9] = -95.0
advantages[2, 9] = -1.0
for step in range(5):
    log_prob = policy(states[step]).log_softmax(1).gather(1, actions[step]).squeeze(1)
    difference = (log_prob - recorded[step]).clamp(-2.0, 2.0)
    ratio = torch.exp(difference)
    clipped = ratio.clamp(0.8, 1.2)
    loss = -torch.min(ratio * advantages[step], clipped * advantages[step]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
