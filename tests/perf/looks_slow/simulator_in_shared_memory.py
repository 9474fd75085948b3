"""A controller whose plant numpy simulates in memory that a tensor has, too: no op writes what the next one reads."""
import numpy
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
plant = torch.zeros(65, 16, 4)
state = plant.numpy()
gain = torch.randn(4, 4) / 4
for step in range(24):
    state[0] = numpy.random.default_rng(step).standard_normal((16, 4))
    for time in range(64):
        pushed = (plant[time] @ gain).clamp(-1, 1).numpy()
        state[time + 1] = 0.9 * state[time] + 0.1 * pushed
    loss = (model(plant[:-1]) - plant[1:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
