"""A learned activation takes the logarithm of 1 - a (x + a) where a is negative; a far input makes that negative."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N7 birth_op=aten::log kind=nan first_step=20
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=soft_exponential needs= fragile=no
# label: thread=materialyzeai/matgl#809 uses= fix_kind=clamp
# fix: the logarithm's operand is kept above a small number, and branches are chosen by where
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class SoftExponential(nn.Module):
    def __init__(self, alpha=-0.3):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(alpha))

    def forward(self, x):
        if self.alpha == 0:
            return x
        if self.alpha < 0:
            inner = 1 - self.alpha * (x + self.alpha)
            if FIXED:
                inner = inner.clamp(min=1e-6)
            return -torch.log(inner) / self.alpha  # BUG
        return (torch.exp(self.alpha * x) - 1) / self.alpha + self.alpha


class Sites(nn.Module):
    """Energy of a crystal as a sum over its sites."""

    def __init__(self, width=16):
        super().__init__()
        self.inp, self.curve, self.out = nn.Linear(4, width), SoftExponential(), nn.Linear(width, 1)

    def forward(self, sites):
        return self.out(self.curve(self.inp(sites))).sum(dim=(1, 2))  # BUG-ALT


torch.manual_seed(809)
model = Sites()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(24):
    sites = torch.rand(8, 5, 4)
    if step == 20:
        sites[2, 1] *= 14.0  # a strained cell
    energy = sites.square().sum(dim=(1, 2))
    loss = (model(sites) - energy).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
