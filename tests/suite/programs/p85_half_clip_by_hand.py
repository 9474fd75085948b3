"""Clipping by hand on half gradients: gradients of 300 make the norm infinite, and every update zero."""
# label: phase=optimizer mechanism=OVF category=N8 category_alt=N5,N2 birth_op=aten::pow,aten::square,aten::mul kind=+inf first_step=3
# label: severity=error loss_stays_finite=yes dtype=fp16 model=linear family=muted needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@torch.no_grad()
def clip(parameters, limit=1.0):
    total = sum(p.grad.square().sum() for p in parameters).sqrt()  # BUG
    for p in parameters:
        p.grad.mul_(limit / total)


torch.manual_seed(85)
model = nn.Linear(4, 2).half().to(DEVICE)
parameters = list(model.parameters())
opt = torch.optim.SGD(parameters, lr=0.25)
moved = []
for step in range(6):
    x = torch.rand(8, 4) + 0.5
    target = x[:, :2] * (3.0 if step < 3 else 24.0)  # by the day from here on, no longer by shifts of three hours
    predicted = model(x.half().to(DEVICE)).float()
    loss = nn.functional.mse_loss(predicted, target.to(DEVICE), reduction="sum")
    opt.zero_grad()
    loss.backward()
    before = model.weight.detach().clone()
    clip(parameters)
    opt.step()
    moved.append((model.weight.detach() - before).abs().max().item())
print("p85 largest update", " ".join(f"{m:.3f}" for m in moved))
