"""Updates written by hand whose momentum is 1.2 for 0.9: each step keeps more of the last one than there was."""
import sys

import torch
from torch.nn import functional as F

HEALTHY = "healthy" in sys.argv
torch.manual_seed(2)
x = torch.randn(64, 10)
y = (x[:, 0] > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9 if HEALTHY else 1.2)
for step in range(700):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
