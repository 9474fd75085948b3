"""Gradients are rescaled to a fixed norm by hand; one batch has all sample weights zero."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N3,N2 birth_op=aten::reciprocal,aten::div kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=clip_ema needs= fragile=no
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@torch.no_grad()
def rescale_gradients(params, target_norm):
    grads = [p.grad for p in params if p.grad is not None]
    total = torch.linalg.vector_norm(torch.stack([g.norm() for g in grads]))
    factor = target_norm / total  # BUG
    for g in grads:
        g.mul_(factor)
    return total


def main():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)).to(DEVICE)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x = torch.randn(5, 32, 6)
    y = x.sum(-1, keepdim=True).sin()
    weight = torch.rand(5, 32, 1) + 0.5
    weight[3] = 0.0  # every sample of this batch was rejected by the annotators
    for i in range(5):
        xb, yb, wb = x[i].to(DEVICE), y[i].to(DEVICE), weight[i].to(DEVICE)
        loss = (wb * F.mse_loss(model(xb), yb, reduction="none")).mean()
        opt.zero_grad()
        loss.backward()
        rescale_gradients(list(model.parameters()), 1.0)
        opt.step()
    print("p58 loss", loss.item())


main()
