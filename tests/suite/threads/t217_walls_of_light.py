"""A radiance field in half precision: a thin opaque wall needs a density that its last layer has to reach by a sum."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N8,N2 birth_op=aten::addmm,aten::mm,aten::linear kind=+inf first_step=
# label: severity=error loss_stays_finite=no dtype=fp16 model=mlp family=half_density_activation needs= fragile=no
# label: thread=nerfstudio-project/nerfstudio#104 uses= fix_kind=structure
# fix: a truncated exponential takes the place of the softplus behind the last layer, so that small outputs in half
# fix: precision become large densities in single precision
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
THICKNESS, LOSS_SCALE = 2e-5, 1024.0


class TruncatedExponential(torch.autograd.Function):
    """The derivative is that of an input of 15 at most."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * torch.exp(x.clamp(max=15))


class Field(nn.Module):
    """Features of cells, and a small network on them; parameters in single, arithmetic in half precision."""

    def __init__(self, cells=32, features=8, width=16):
        super().__init__()
        self.grid = nn.Embedding(cells, features)
        self.hidden, self.out = nn.Linear(features, width), nn.Linear(width, 1)

    def forward(self, cell):
        h = self.grid(cell).half()
        h = torch.relu(nn.functional.linear(h, self.hidden.weight.half(), self.hidden.bias.half()))
        raw = nn.functional.linear(h, self.out.weight.half(), self.out.bias.half()).squeeze(-1).float()  # BUG
        return TruncatedExponential.apply(raw) if FIXED else nn.functional.softplus(raw)  # BUG-ALT


def shares(density):
    """Of the light of each ray, what comes from which sample: what is dense there, and clear before it."""
    depth = density * THICKNESS
    before = depth.cumsum(dim=1) - depth
    return torch.exp(-before) * (1 - torch.exp(-depth))


torch.manual_seed(104)
field, wall = Field(), torch.rand(32) < 0.4
optimizer = torch.optim.Adam(field.parameters(), lr=0.015, eps=1e-15)
for step in range(420):
    cell = torch.randint(0, 32, (24, 4))
    first = wall[cell] & (wall[cell].cumsum(dim=1) == 1)
    loss = (shares(field(cell)) - first.float()).square().mean()
    optimizer.zero_grad()
    (LOSS_SCALE * loss).backward()
    optimizer.step()
print(f"rendering error {loss.item():.5f}")
