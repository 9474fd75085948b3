"""A schedule that multiplies the rate by 1.1 in each step from step 200 on, where it should have fallen."""
import sys

import torch
from torch.nn import functional as F

HEALTHY = "healthy" in sys.argv
torch.manual_seed(8)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: 1.0 if step < 200 else min((0.9 if HEALTHY else 1.1) ** (step - 200), 30.0))
for step in range(900):
    loss = F.mse_loss(model(x), y + 0.1 * torch.randn_like(y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if not loss.isfinite():
        break
