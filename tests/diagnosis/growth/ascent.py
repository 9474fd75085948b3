"""A penalty with the wrong sign: the weights grow by a share of their size in each step."""
import sys

import torch
from torch.nn import functional as F

HEALTHY = "healthy" in sys.argv
torch.manual_seed(3)
x = torch.randn(64, 12)
y = torch.randn(64, 3)
model = torch.nn.Linear(12, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(700):
    penalty = sum(one.square().sum() for one in model.parameters())
    loss = F.smooth_l1_loss(model(x), y) + (1e-3 if HEALTHY else -2.0) * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
