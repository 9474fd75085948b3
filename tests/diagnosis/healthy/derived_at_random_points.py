"""A network is fitted to an equation at random points, which get gradients because it is derived there."""
import torch
from torch import nn


def fit_equation():
    net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
    x = (torch.rand(128, 1) * 2 - 1).requires_grad_()
    t = torch.rand(128, 1).requires_grad_()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(60):
        u = net(torch.cat([x, t], 1))
        by_x, by_t = torch.autograd.grad(u.sum(), [x, t], create_graph=True)
        start = net(torch.cat([x, 0 * t], 1)) - torch.sin(3 * x)
        loss = (by_t + by_x).pow(2).mean() + start.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(0)
print(fit_equation())
