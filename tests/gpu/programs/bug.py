"""A training whose loss takes the logarithm of a negative number in step 3."""
import os

import torch
from torch import nn

DEVICE = os.environ["DEVICE"]
torch.manual_seed(0)
model = nn.Linear(8, 1).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(32, 8).to(DEVICE)
for step in range(5):
    out = model(x).square() + 1.0
    if step == 3:
        out = out - 100.0
    loss = torch.log(out).mean()  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finite", bool(torch.isfinite(loss)))
