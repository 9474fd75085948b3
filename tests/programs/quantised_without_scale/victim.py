"""Activations are kept in float8 between the passes, cut to its range and never scaled to it.

float8_e4m3fn ends at 448. The layer's values are a few thousand: nearly all of them are kept as 448 or -448.
"""
import torch
from torch import nn

LARGEST = torch.finfo(torch.float8_e4m3fn).max


class Kept(nn.Module):
    """A layer whose result is rounded to float8; the gradient passes as if it were not."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 16)

    def forward(self, x):
        y = self.layer(x)
        kept = y.detach().clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)  # BUG
        return y + (kept.float() - y).detach()


torch.manual_seed(0)
model = nn.Sequential(Kept(), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    x = 4000 * torch.randn(32, 4)
    loss = nn.functional.mse_loss(model(x).squeeze(1), x[:, 0].sign())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}")
