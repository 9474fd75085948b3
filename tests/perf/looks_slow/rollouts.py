"""A policy that plays before each update: what the world answers is computed by numpy from what the policy did."""
import numpy
import torch
from torch import nn

rng = numpy.random.default_rng(0)
torch.manual_seed(0)
policy, critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=1e-3, fused=True)
seen, done_what, rewards = torch.zeros(32, 8, 4), torch.zeros(32, 8, dtype=torch.long), torch.zeros(32, 8)
world = numpy.zeros((8, 4), dtype="float32")


def answer(actions):
    world[:, 1] += 0.1 * (2 * actions - 1)
    world[:, 0] += 0.1 * world[:, 1]
    world[:, 2:] = 0.9 * world[:, 2:] + 0.1 * rng.standard_normal((8, 2), dtype="float32")
    return -numpy.abs(world[:, 0])


for step in range(24):
    world[:] = rng.standard_normal((8, 4), dtype="float32")
    with torch.no_grad():
        for time in range(32):
            seen[time] = torch.from_numpy(world)
            done_what[time] = torch.distributions.Categorical(logits=policy(seen[time])).sample()
            rewards[time] = torch.from_numpy(answer(done_what[time].numpy()))
    returns, later = torch.zeros(32, 8), torch.zeros(8)
    for time in range(31, -1, -1):
        later = rewards[time] + 0.95 * later
        returns[time] = later
    value = critic(seen).squeeze(-1)
    chosen = policy(seen).log_softmax(-1).gather(-1, done_what[..., None]).squeeze(-1)
    loss = (value - returns).square().mean() - (chosen * (returns - value.detach())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
