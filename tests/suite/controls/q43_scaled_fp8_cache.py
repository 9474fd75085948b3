"""Activations kept in float8, each tensor scaled so that its largest value is the type's largest."""
# label: tempts=headroom max_severity=none dtype=fp8 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
LARGEST = torch.finfo(torch.float8_e4m3fn).max


class Rounded(nn.Module):
    """A layer whose result is kept in float8; the gradient passes straight through."""

    def __init__(self, wide, high):
        super().__init__()
        self.layer = nn.Linear(wide, high)

    def forward(self, x):
        y = torch.relu(self.layer(x))
        scale = LARGEST / y.detach().abs().amax().clamp(min=1e-6)
        kept = (y.detach() * scale).clamp(max=LARGEST).to(torch.float8_e4m3fn)
        return y + (kept.float() / scale - y).detach()


torch.manual_seed(43)
model = nn.Sequential(Rounded(6, 32), Rounded(32, 16), nn.Linear(16, 1)).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(8):
    x = torch.randn(32, 6)
    loss = nn.functional.mse_loss(model(x.to(DEVICE)).squeeze(1), x[:, 0].to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"scaled float8: loss {loss.item():.3f}")
