"""A Poisson regression of call counts whose rate is a plain linear function of the features.

Nothing keeps the rate positive. The fourth batch holds a caller with a large negative balance, the rate
becomes negative, and its logarithm is NaN.
"""
import torch
from torch import nn


class Rate(nn.Module):
    """Expected calls an hour, linear in the features."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 1)
        nn.init.constant_(self.linear.weight, 0.5)
        nn.init.constant_(self.linear.bias, 1.0)

    def forward(self, x):
        return self.linear(x).squeeze(1)


torch.manual_seed(0)
model = Rate()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = torch.rand(6, 16, 3)
batches[3, 5] = torch.tensor([-40.0, 0.5, 0.5])
for step, x in enumerate(batches):
    counts = x.clamp(min=0).sum(1).round()
    rate = model(x)
    loss = (rate - counts * torch.log(rate)).mean()  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
