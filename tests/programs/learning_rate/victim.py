"""Linear regression with a learning rate ten thousand times too large.

Every step overshoots further than the one before, until the squared error leaves the range of float32.
"""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1, bias=False)
nn.init.constant_(model.weight, 1.0)
optimizer = torch.optim.SGD(model.parameters(), lr=1e4)
x = torch.rand(32, 4)
target = x.sum(1, keepdim=True) * 3.0
for step in range(6):
    error = model(x) - target
    loss = error.pow(2).mean()  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3e}")
