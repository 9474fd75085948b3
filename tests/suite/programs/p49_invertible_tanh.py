"""A memory-saving flow recomputes the slope of atanh from its input, where tanh reached 1."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::reciprocal,aten::div kind=+inf first_step=4
# label: severity=error loss_stays_finite=yes dtype=fp32 model=flow family=custom_backward needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
EDGE = 1.0 - 1e-6


class SafeAtanh(torch.autograd.Function):
    """atanh(y) of y in [-1, 1], kept finite at the edges."""

    @staticmethod
    def forward(ctx, y):
        ctx.save_for_backward(y)
        return torch.atanh(y.clamp(-EDGE, EDGE))

    @staticmethod
    def backward(ctx, grad):
        y, = ctx.saved_tensors
        slope = 1.0 / (1.0 - y * y)  # BUG
        return grad * slope


class SquashFlow(nn.Module):
    """Affine, squash, scale, unsquash; returns the latent and the log-determinant."""

    def __init__(self, dims=3):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dims))
        self.shift = nn.Parameter(torch.zeros(dims))
        self.damp = nn.Parameter(torch.full((dims,), 2.0))

    def forward(self, x):
        squashed = torch.tanh(x * self.log_scale.exp() + self.shift)
        latent = SafeAtanh.apply(squashed) * torch.sigmoid(self.damp)
        return latent, self.log_scale.sum() + nn.functional.logsigmoid(self.damp).sum()


torch.manual_seed(49)
data = torch.randn(5, 20, 3)
data[4, 7, 1] = 60.0
flow = SquashFlow().to(DEVICE)
opt = torch.optim.Adam(flow.parameters(), lr=0.02)
normal = torch.distributions.Normal(torch.tensor(0.0, device=DEVICE), 1.0)
for x in data.to(DEVICE):
    latent, log_det = flow(x)
    nll = -(normal.log_prob(latent).sum(dim=1) + log_det).mean()
    opt.zero_grad()
    nll.backward()
    opt.step()
print(f"flow: last nll {nll.item():.4f}")
