"""Rounds that read what earlier ones keep: a cache of keys and values, the vector of a spectral norm, running
statistics, a filter's state, rounds that look at a number."""
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(0)
q, k, v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
normed = spectral_norm(nn.Linear(8, 8))
optimizer = torch.optim.SGD([*q.parameters(), *k.parameters(), *v.parameters(), *normed.parameters()], lr=0.01)
mean, decay = torch.zeros(8), torch.rand(16, 8)
for step in range(24):
    x = torch.randn(32, 16, 8)
    keys, values, hidden = torch.full((16, 32, 8), -1.0), torch.zeros(16, 32, 8), torch.zeros(16, 32, 8)
    with torch.no_grad():
        for at in range(32):
            keys[:, at], values[:, at] = k(x[at]), v(x[at])
            near = (q(x[at])[:, None] @ keys.transpose(1, 2)).softmax(-1) @ values
            hidden[:, at] = near[:, 0]
    outs = [normed(x[at]) for at in range(32)]
    scaled = []
    for at in range(32):
        mean.mul_(0.99).add_(x[at].mean(0), alpha=0.01)
        scaled.append(x[at] - mean)
    filtered, state = torch.zeros(32, 16, 8), torch.zeros(16, 8)
    for at in range(32):
        torch.addcmul(x[at], decay, state, out=filtered[at])
        state = filtered[at]
    largest = 0.0
    for at in range(32):
        largest = max(largest, (x[at] * filtered[at]).abs().max().item())
    loss = (v(x + torch.stack(scaled)) + torch.stack(outs) - filtered / largest).square().mean() + hidden.mean() * 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
