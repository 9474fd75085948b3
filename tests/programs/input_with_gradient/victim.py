"""A network that solves u'' = -u from measured points, whose inputs require a gradient.

The derivative of the network is taken with respect to the points. One point of the last batches was not measured, and
the table has NaN there.
"""
import numpy
import torch
from torch import nn


def points(number):
    """Batches of points between 0 and 1, read from a table."""
    table = numpy.random.default_rng(1).uniform(0.0, 1.0, (number, 8, 1)).astype(numpy.float32)
    table[5, 3] = numpy.nan
    return table


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step, batch in enumerate(points(8)):
    x = torch.from_numpy(batch).requires_grad_()  # BUG
    u = model(x)
    slope, = torch.autograd.grad(u.sum(), x, create_graph=True)
    curve, = torch.autograd.grad(slope.sum(), x, create_graph=True)
    loss = (curve + u).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
