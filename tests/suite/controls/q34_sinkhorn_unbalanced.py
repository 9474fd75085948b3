"""Unbalanced optimal transport in log space between point sets with atoms of zero mass."""
# label: tempts=logspace max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def transport_plan(cost, mass_a, mass_b, eps=0.1, reach=1.0, iterations=10):
    """Plan of entropic transport with softened marginals; an atom of no mass has log -inf."""
    damp = reach / (reach + eps)
    log_a, log_b = mass_a.log(), mass_b.log()
    f, g = torch.zeros_like(mass_a), torch.zeros_like(mass_b)
    for _ in range(iterations):
        f = -damp * eps * torch.logsumexp(log_b[None, :] + (g[None, :] - cost) / eps, dim=1)
        g = -damp * eps * torch.logsumexp(log_a[:, None] + (f[:, None] - cost) / eps, dim=0)
    return torch.exp(log_a[:, None] + log_b[None, :] + (f[:, None] + g[None, :] - cost) / eps)


torch.manual_seed(34)
mapping = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(DEVICE)
opt = torch.optim.Adam(mapping.parameters(), lr=1e-2)
goal = torch.randn(10, 2).to(DEVICE)
for step in range(5):
    source = torch.rand(12, 2).to(DEVICE)
    mass_a = torch.rand(12)
    mass_a[9:] = 0.0  # padding of the point set
    mass_b = torch.ones(10)
    mass_b[step] = 0.0
    mass_a, mass_b = (mass_a / mass_a.sum()).to(DEVICE), (mass_b / mass_b.sum()).to(DEVICE)
    cost = torch.cdist(mapping(source), goal).square()
    plan = transport_plan(cost, mass_a, mass_b)
    loss = (plan * cost).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"sinkhorn: loss {loss.item():.3f}, plan mass {plan.sum().item():.3f}")
