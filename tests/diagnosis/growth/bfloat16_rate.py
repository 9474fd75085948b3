"""Two layers in bfloat16 and a rate that is too large; the values are as wide as those of float32."""
import sys

import torch
from torch.nn import functional as F

HEALTHY = "healthy" in sys.argv
torch.manual_seed(11)
x = torch.randn(64, 8).bfloat16()
y = (x @ torch.randn(8, 1).bfloat16())
model = torch.nn.Linear(8, 1).bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 if HEALTHY else 0.7)
for step in range(400):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
