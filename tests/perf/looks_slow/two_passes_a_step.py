"""Sharpness-aware training: the first pass says where to look, the second one what to do; activations are made anew."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))
second = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 8))
parameters = [*first.parameters(), *second.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.01)


def gradients(x):
    optimizer.zero_grad()
    hidden = checkpoint(first, x.requires_grad_(), use_reentrant=True)
    checkpoint(second, hidden, use_reentrant=False).square().mean().backward()


for step in range(24):
    x = torch.randn(64, 128)
    gradients(x)
    with torch.no_grad():
        scale = 0.05 / torch.stack([p.grad.norm() for p in parameters]).norm()
        moved = [scale * p.grad for p in parameters]
        torch._foreach_add_(parameters, moved)
    gradients(x)
    with torch.no_grad():
        torch._foreach_sub_(parameters, moved)
    optimizer.step()
