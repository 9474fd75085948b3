"""A guard before step(): a batch whose gradient is not finite is skipped, by the model's own zero_grad()."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
skipped = 0
for step in range(8):
    x = torch.rand(16, 5)
    target = model(x).detach() if step in (3, 7) else torch.rand(16, 4)  # a batch that has been learned already
    distance = (model(x) - target).square().sum(1).sqrt()
    distance.mean().backward()
    if not all(p.grad.isfinite().all() for p in model.parameters()):
        skipped += 1
        model.zero_grad()
        continue
    optimizer.step()
    model.zero_grad()
print("skipped", skipped, "finite", all(bool(p.isfinite().all()) for p in model.parameters()))
