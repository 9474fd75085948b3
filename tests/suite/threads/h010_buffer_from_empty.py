"""A replay memory is made by torch.empty(), whose garbage alarms a reader; only rows that were written are read."""
# label: tempts=unwritten_memory max_severity=none dtype=fp32 needs= family=empty_buffer
# label: thread=pytorch/pytorch#24263 uses=
# why: torch.empty() is meant to leave memory as it is, says the maintainer; each row is written before it can be drawn
import torch
from torch import nn


class Replay:
    def __init__(self, capacity, observations):
        self.observation = torch.empty(capacity, observations)
        self.action = torch.empty(capacity, dtype=torch.long)
        self.reward = torch.empty(capacity)
        self.filled = 0

    def add(self, observation, action, reward):
        rows = slice(self.filled, self.filled + len(action))
        self.observation[rows], self.action[rows], self.reward[rows] = observation, action, reward
        self.filled += len(action)

    def draw(self, size):
        rows = torch.randint(0, self.filled, (size,))
        return self.observation[rows], self.action[rows], self.reward[rows]


torch.manual_seed(24263)
replay = Replay(4096, 5)
q_net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(q_net.parameters(), lr=2e-3)
for step in range(40):
    observation = torch.randn(16, 5)
    with torch.no_grad():
        action = q_net(observation).argmax(dim=1)
        explore = torch.rand(16) < 0.3
        action[explore] = torch.randint(0, 3, (int(explore.sum()),))
    replay.add(observation, action, (action == observation[:, :3].argmax(dim=1)).float())
    seen, taken, reward = replay.draw(32)
    loss = nn.functional.smooth_l1_loss(q_net(seen)[torch.arange(32), taken], reward)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"value error {loss.item():.4f} after {replay.filled} steps")
