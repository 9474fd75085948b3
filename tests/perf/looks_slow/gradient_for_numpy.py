"""The gradient of what a simulation has computed goes back to that simulation, which is numpy's: no op reads it."""
import numpy
import torch
from torch import nn

torch.manual_seed(0)
rng = numpy.random.default_rng(0)
system = rng.standard_normal((128, 128)).astype("float32") / 12
setting = numpy.zeros((256, 128), dtype="float32")
early, late = nn.Sequential(*[nn.Linear(128, 128) for layer in range(3)]).requires_grad_(False), nn.Linear(128, 1)
optimizer = torch.optim.SGD(late.parameters(), lr=0.01)
for step in range(24):
    answer = torch.from_numpy(setting @ system + 1).requires_grad_()
    loss = (late(early(answer)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    setting -= 0.1 * answer.grad.numpy() @ system.T
    optimizer.step()
