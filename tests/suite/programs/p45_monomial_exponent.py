"""A symbolic-regression layer learns exponents of x ** n; the slope in n needs log(x)."""
# label: phase=backward mechanism=DOM category=N3 category_alt=N2 birth_op=aten::log kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=symbolic family=slope needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class RoundStraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Monomials(nn.Module):
    """Products of powers of the inputs, with whole exponents."""

    def __init__(self, inputs, terms):
        super().__init__()
        self.exponents = nn.Parameter(torch.randint(1, 4, (terms, inputs)).float())

    def forward(self, x):
        exponents = RoundStraightThrough.apply(self.exponents)
        powers = x[:, None, :] ** exponents  # BUG
        return torch.prod(powers, dim=2)


def sample(step):
    """Lengths in metres. From the fourth batch on they are relative to the centre of the rig."""
    x = 0.5 + torch.rand(16, 2)
    if step >= 3:
        x = x - 1.0
    return x, 3.0 * x[:, 0] ** 2 * x[:, 1]


torch.manual_seed(45)
model = nn.Sequential(Monomials(inputs=2, terms=5), nn.Linear(5, 1)).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(5):
    x, y = sample(step)
    prediction = model(x.to(DEVICE)).squeeze(1)
    loss = (prediction - y.to(DEVICE)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"monomials: last loss {loss.item():.4f}")
