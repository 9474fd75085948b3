"""The same mistake on batches of 16 with momentum: growth with the noise of batches."""
import sys

import torch
from torch.nn import functional as F

HEALTHY = "healthy" in sys.argv
torch.manual_seed(1)
x = torch.randn(512, 8)
y = x @ torch.randn(8, 1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03 if HEALTHY else 0.9, momentum=0.5)
for step in range(400):
    batch = torch.randint(0, 512, (16,))
    loss = F.mse_loss(model(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
