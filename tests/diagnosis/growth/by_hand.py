"""Gradient descent written by hand with an update that is added instead of subtracted."""
import sys

import torch

HEALTHY = "healthy" in sys.argv
torch.manual_seed(10)
weight = torch.randn(16, 4, requires_grad=True)
x = torch.randn(100, 16)
y = torch.randn(100, 4)
for step in range(400):
    loss = (x @ weight - y).square().mean()
    loss.backward()
    with torch.no_grad():
        weight -= (0.1 if HEALTHY else -0.3) * weight.grad
        weight.grad = None
    if not loss.isfinite():
        break
