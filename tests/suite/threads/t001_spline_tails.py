"""A flow of monotone bumps keeps the identity outside its interval by where(); the inverse's root is taken there."""
# label: phase=forward mechanism=DOM category=N3 category_alt=N2 birth_op=aten::sqrt kind=nan first_step=24
# label: severity=error loss_stays_finite=yes dtype=fp32 model=flow family=flow_spline_tails needs= fragile=no
# label: thread=danielward27/flowjax#240 uses= fix_kind=where
# fix: values are clipped into the interval before the root is taken; the unclipped ones serve the identity only
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class BumpFlow(nn.Module):
    """y = x + a (b^2 - x^2) inside [-b, b], y = x outside; |a| < 1 / 2b keeps it monotone."""

    def __init__(self, features, bound):
        super().__init__()
        self.bound = bound
        self.raw = nn.Parameter(0.1 * torch.randn(features))
        self.shift = nn.Parameter(torch.zeros(features))

    def inverse(self, y):
        """(x, log |dx/dy|)"""
        y = y - self.shift
        inside = y.abs() < self.bound
        a = torch.tanh(self.raw) / (2.05 * self.bound)
        bent = y.clamp(-self.bound, self.bound) if FIXED else y
        root = torch.sqrt(1 + 4 * a * (a * self.bound**2 - bent))  # BUG
        x = torch.where(inside, 2 * (bent - a * self.bound**2) / (1 + root), y)
        return x, torch.where(inside, -root.log(), 0.0).sum(dim=-1)


class Density(nn.Module):
    def __init__(self, features, layers=3):
        super().__init__()
        self.flows = nn.ModuleList(BumpFlow(features, bound=3.0) for _ in range(layers))
        self.log_scale = nn.Parameter(torch.zeros(features))

    def log_prob(self, y):
        y, total = y * torch.exp(-self.log_scale), -self.log_scale.sum()
        for flow in self.flows:
            y, log_det = flow.inverse(y)
            total = total + log_det
        return total + torch.distributions.Normal(0.0, 1.0).log_prob(y).sum(dim=-1)


def readings(step, count=64):
    """A skewed sample; the detector saturates now and then, and such a reading is far outside."""
    sample = torch.randn(count, 4) * 0.8 + 0.3 * torch.rand(count, 4).log()
    if step % 25 == 24:
        sample[:2] = torch.tensor([40.0, -40.0])[:, None]
    return sample


torch.manual_seed(1)
density = Density(4)
optimizer = torch.optim.Adam(density.parameters(), lr=5e-3)
for step in range(25):
    loss = -density.log_prob(readings(step)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"nats per sample {loss.item():.3f}; size of the bumps {density.flows[0].raw.norm().item():.3f}")
