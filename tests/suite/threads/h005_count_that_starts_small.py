"""A running mean and deviation of observations starts with a count of 1e-4, which a reader took for a missing guard."""
# label: tempts=tiny_count max_severity=none dtype=fp32 needs= family=running_count
# label: thread=openai/baselines#586 uses=
# why: the count only weighs the initial guess; after the first batch it is that batch's size plus 1e-4, and nothing
# why: divides by
# why: less than one sample
import torch
from torch import nn


class RunningMeanStd(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))
        self.register_buffer("count", torch.tensor(1e-4))

    @torch.no_grad()
    def update(self, batch):
        mean, variance, size = batch.mean(dim=0), batch.var(dim=0, correction=0), len(batch)
        delta, total = mean - self.mean, self.count + size
        moment = self.variance * self.count + variance * size + delta.square() * self.count * size / total
        self.mean += delta * size / total
        self.variance.copy_(moment / total)
        self.count.copy_(total)

    def forward(self, x):
        return ((x - self.mean) / (self.variance + 1e-8).sqrt()).clamp(-10, 10)


class Critic(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.normalise = RunningMeanStd(size)
        self.net = nn.Sequential(nn.Linear(size, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, observation):
        return self.net(self.normalise(observation)).squeeze(-1)


torch.manual_seed(586)
critic = Critic(4)
optimizer = torch.optim.Adam(critic.net.parameters(), lr=3e-3)
offset = torch.tensor([0.0, 1e3, -50.0, 1e-3])
for step in range(30):
    observation = torch.randn(32, 4) * torch.tensor([1.0, 5.0, 0.1, 1e-5]) + offset
    observation[:, 2] = -50.0  # a sensor that never moves
    critic.normalise.update(observation)
    loss = (critic(observation) - observation[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"value error {loss.item():.4f}, samples {critic.normalise.count.item():.1f}")
