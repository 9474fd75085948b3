"""A guard before step(): where the norm of the gradients is not finite the loop goes on to the next batch."""
import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
skipped = 0
for step in range(8):
    x = torch.rand(16, 5)
    target = model(x).detach() if step == 3 else torch.rand(16, 4)  # a batch that has been learned already
    optimizer.zero_grad()
    (model(x) - target).square().sum(1).sqrt().mean().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if not math.isfinite(norm.item()):
        skipped += 1
        continue
    optimizer.step()
print("skipped", skipped, "finite", all(bool(p.isfinite().all()) for p in model.parameters()))
