"""A policy and a world of numpy's that write to one memory, in turn: no op shows that a round needs the one before."""
import numpy
import torch
from torch import nn

torch.manual_seed(0)
rng = numpy.random.default_rng(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
for step in range(24):
    seen, done = torch.zeros(33, 8, 4), torch.zeros(32, 8, 4)
    world, actions = seen.numpy(), done.numpy()
    world[0] = rng.standard_normal((8, 4))
    with torch.no_grad():
        for t in range(32):
            done[t] = policy(seen[t])
            world[t + 1] = 0.9 * world[t] + 0.1 * actions[t]
        fixed, pushes = torch.zeros(8, 4), torch.randn(32, 8, 4)
        state, answers = fixed.numpy(), []
        for t in range(32):
            answer = policy(fixed + pushes[t])
            state[:] = 0.9 * state + 0.1 * answer.numpy()
            answers.append(answer)
    loss = (policy(seen[:-1]) - done.detach() + torch.stack(answers)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
