"""A policy that is shown a new array in each round, which a world computes from what the policy did before."""
import numpy
import torch
from torch import nn

torch.manual_seed(0)
rng = numpy.random.default_rng(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
for step in range(24):
    world, kept, pushes = rng.standard_normal((8, 4), dtype="float32"), [], torch.randn(32, 8, 4)
    with torch.no_grad():
        for t in range(32):
            push = (pushes[t] * 0.1).tanh()
            action = policy(torch.from_numpy(world)) + push
            world = 0.9 * world + 0.1 * action.numpy()
            kept.append(action)
        for t in range(32):
            scale = (pushes[t] * 0.1).exp().mean()
            action = pushes[t] * torch.from_numpy(world)
            world = 0.9 * world + 0.01 * (action * scale).numpy()
            kept.append(action)
    loss = (policy(pushes) + torch.stack(kept).mean()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
