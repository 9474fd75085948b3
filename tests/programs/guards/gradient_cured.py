"""Gradients are cured between backward() and step(): what is not finite in them becomes zero, in place."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(8):
    x = torch.rand(16, 5)
    target = model(x).detach() if step == 3 else torch.rand(16, 4)  # a batch that has been learned already
    optimizer.zero_grad()
    (model(x) - target).square().sum(1).sqrt().mean().backward()
    for p in model.parameters():
        p.grad.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    optimizer.step()
print("finite", all(bool(p.isfinite().all()) for p in model.parameters()))
