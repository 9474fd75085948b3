"""The regression of victim.py with the variance as the mean of squared deviations, which cannot be negative."""
import torch
from torch import nn


class Standardise(nn.Module):
    """Zero mean and unit deviation over the sensors of one sample."""

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        deviation = (x - mean).pow(2).mean(1, keepdim=True).sqrt()
        return (x - mean) / (deviation + 1.0)


torch.manual_seed(0)
model = nn.Sequential(Standardise(), nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
readings = 1000.0 + 20.0 * torch.rand(6, 16, 2) + torch.tensor([0.0, 40.0])
readings[4, 7] = torch.tensor([1000.07, 1000.072])
for step, x in enumerate(readings):
    target = (x[:, :1] - 1010.0) / 10.0
    loss = nn.functional.mse_loss(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
