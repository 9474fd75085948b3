"""A table that numpy updates in the memory that it shares with a parameter: no op reads the parameter's gradient."""
import numpy
import torch
from torch import nn

torch.manual_seed(0)
values = numpy.random.default_rng(0).standard_normal((256, 256)).astype("float32") / 16
table, head = nn.Parameter(torch.from_numpy(values).clone()), nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 4))
shared, momentum = table.detach().numpy(), numpy.zeros_like(values)
optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
for step in range(24):
    loss = head(torch.randn(128, 256) @ table).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    momentum = 0.9 * momentum + table.grad.numpy()
    shared -= 0.01 * momentum
    table.grad = None
