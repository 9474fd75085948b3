"""A regression on pressure readings that standardises each pair of sensors inside the model.

The variance is taken as E[x^2] - E[x]^2. The readings sit near 1000, so in float32 that difference has an
error of about 0.06; for two sensors that agree to the last bits it comes out negative, and its root is NaN.
"""
import torch
from torch import nn


class Standardise(nn.Module):
    """Zero mean and unit deviation over the sensors of one sample."""

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        deviation = (x.pow(2).mean(1, keepdim=True) - mean * mean).sqrt()  # BUG
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
