"""A flow of affine couplings starts at its full learning rate; the exponential scales run away within a few steps."""
# label: phase=forward mechanism=HYPER category=N5 category_alt=N7,N2,N4 first_step=
# label: birth_op=aten::exp,aten::mul,aten::addmm,aten::square,aten::pow,aten::add kind=+inf,-inf,nan
# label: severity=error loss_stays_finite=no dtype=fp32 model=flow family=glow_warm_up needs= fragile=no
# label: thread=y0ast/Glow-PyTorch#2 uses= fix_kind=schedule
# fix: the learning rate warms up from zero over the first part of training
import math
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Coupling(nn.Module):
    """Half of the numbers scale and shift the other half."""

    def __init__(self, size, width=64, swap=False):
        super().__init__()
        self.swap = swap
        self.net = nn.Sequential(nn.Linear(size // 2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, size))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.swap:
            a, b = b, a
        log_scale, shift = self.net(a).chunk(2, dim=1)  # BUG-ALT
        b = b * log_scale.exp() + shift  # BUG
        return torch.cat([b, a] if self.swap else [a, b], dim=1), log_scale.sum(dim=1)


class Flow(nn.Module):
    def __init__(self, size=8, depth=6):
        super().__init__()
        self.steps = nn.ModuleList([Coupling(size, swap=bool(index % 2)) for index in range(depth)])

    def forward(self, x):
        total = 0
        for step in self.steps:
            x, log_det = step(x)
            total = total + log_det
        bits = 0.5 * x.square().sum(dim=1) + 0.5 * x.shape[1] * math.log(2 * math.pi)  # BUG-ALT
        return (bits - total).mean()


torch.manual_seed(1)
flow = Flow()
optimizer = torch.optim.Adamax(flow.parameters(), lr=1.0)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 8000) if FIXED else 1.0)
for step in range(40):
    angle = torch.rand(64, 1) * 2 * math.pi
    x = torch.cat([angle.cos(), angle.sin()] * 4, dim=1) * 2 + 0.1 * torch.randn(64, 8)
    loss = flow(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # BUG-ALT
    warm_up.step()
print(f"nats {loss.item():.3f}")
