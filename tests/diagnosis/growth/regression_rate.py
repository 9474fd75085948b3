"""A linear regression by SGD on features that nobody scaled: the rate is above 2 over the largest curvature."""
import sys

import torch
from torch.nn import functional as F

HEALTHY = "healthy" in sys.argv
torch.manual_seed(0)
x = torch.randn(128, 8) * torch.linspace(1, 3, 8)
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(128, 1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 if HEALTHY else 0.13)
for step in range(200):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
