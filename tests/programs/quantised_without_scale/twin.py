"""The float8 activations of victim.py, scaled so that the largest of them is the largest float8."""
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
        scale = LARGEST / y.detach().abs().amax()
        kept = (y.detach() * scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
        return y + (kept.float() / scale - y).detach()


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
