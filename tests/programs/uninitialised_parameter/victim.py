"""A layer whose scale is allocated with torch.empty and never initialised.

Deterministic mode fills unwritten memory with NaN, so that what is garbage in production is NaN here, every
time.
"""
import torch
from torch import nn


class Scaled(nn.Module):
    """A linear layer with a learned scale for each output."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = nn.Parameter(torch.empty(outputs))  # BUG

    def forward(self, x):
        return self.linear(x) * self.scale


torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True
model = nn.Sequential(Scaled(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, x in enumerate(torch.randn(4, 16, 4)):
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
