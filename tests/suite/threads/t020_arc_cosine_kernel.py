"""Gaussian process with an arc-cosine kernel: on the diagonal the angle is the arc cosine of exactly one."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::rsqrt,aten::mul,aten::div
# label: kind=+inf,nan first_step=0
# label: severity=error loss_stays_finite=yes dtype=fp64 model=gp family=arc_cosine needs= fragile=no
# label: thread=GPflow/GPflow#409 uses= fix_kind=scale
# fix: the cosine is multiplied by a number slightly below one before the arc cosine, so the slope stays finite
import math
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
torch.set_default_dtype(torch.float64)


class ArcCosineKernel(nn.Module):
    """Order 1: a layer of infinitely many rectifiers."""

    def __init__(self, inputs):
        super().__init__()
        self.log_variance, self.log_bias = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
        self.log_weights = nn.Parameter(torch.zeros(inputs))

    def product(self, a, b):
        return (a * self.log_weights.exp()) @ b.T + self.log_bias.exp()

    def forward(self, a, b):
        norm_a = (a.square() @ self.log_weights.exp() + self.log_bias.exp()).sqrt()
        norm_b = (b.square() @ self.log_weights.exp() + self.log_bias.exp()).sqrt()
        cosine = (self.product(a, b) / (norm_a[:, None] * norm_b)).clamp(-1, 1)
        if FIXED:
            cosine = cosine * (1 - 1e-12)
        angle = torch.acos(cosine)  # BUG
        rectified = torch.sin(angle) + (math.pi - angle) * torch.cos(angle)
        return self.log_variance.exp() / math.pi * norm_a[:, None] * norm_b * rectified


class Regression(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y, self.kernel = x, y, ArcCosineKernel(x.shape[1])
        self.log_noise = nn.Parameter(torch.tensor(-3.0))

    def forward(self):
        covariance = self.kernel(self.x, self.x) + self.log_noise.exp() * torch.eye(len(self.x))
        factor = torch.linalg.cholesky(covariance)
        white = torch.linalg.solve_triangular(factor, self.y[:, None], upper=False)
        return 0.5 * white.square().sum() + factor.diagonal().log().sum()


torch.manual_seed(409)
x = torch.rand(12, 1)
model = Regression(x, torch.sin(3 * x[:, 0]) + 0.1 * torch.randn(12))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for step in range(3):
    loss = model()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not model.kernel.log_bias.isfinite():
        break
print(f"evidence {-loss.item():.3f}, bias {model.kernel.log_bias.item():.3f}")
