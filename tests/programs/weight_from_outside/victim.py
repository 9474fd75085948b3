"""A regression whose weights are pruned by a numpy routine that shares their memory.

After some steps the routine divides each row by its norm and multiplies by the norm it should have. A row that was
pruned to zero has none: zero divided by zero is written straight into the parameter.
"""
import numpy
import torch
from torch import nn


def renormalise(weights, size=0.5):
    """Gives every row the same norm, in place."""
    with numpy.errstate(invalid="ignore"):
        weights /= numpy.linalg.norm(weights, axis=1, keepdims=True)
    weights *= size


def prune(weights, smallest):
    """Sets what is small to zero, in place."""
    weights[numpy.abs(weights) < smallest] = 0.0


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
weights = model[0].weight.detach().numpy()
for step in range(10):
    x = torch.rand(8, 4)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 5:
        prune(weights[2:3], smallest=2.0)
        renormalise(weights)
    print(step, f"{loss.item():.3f}")
