"""A mixture of experts is punished for uneven load by a coefficient of variation; after a reset the load is even."""
# label: phase=backward mechanism=SING category=N3 category_alt=N4,N2 birth_op=aten::div kind=nan,+inf first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=moe family=moe_balance_deviation needs= fragile=no
# label: thread=google-research/vmoe#218 uses= fix_kind=eps
# fix: the deviation is taken of the variance plus a small number, so that its slope is finite at perfect balance
import os

import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def importance_loss(gates):
    """Squared coefficient of variation of how much each expert is wanted."""
    importance = gates.sum(dim=0)
    mean = importance.mean()
    variance = (importance - mean).square().mean()
    deviation = torch.sqrt(variance + 1e-10 if FIXED else variance)  # BUG
    return (deviation / mean).square()


class MixtureLayer(nn.Module):
    def __init__(self, width, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts))
        nn.init.normal_(self.router.weight, std=0.1)

    def forward(self, x):
        gates = self.router(x).softmax(dim=-1)
        mixed = sum(gates[:, i:i + 1] * expert(x) for i, expert in enumerate(self.experts))
        return x + mixed, importance_loss(gates)


class Regressor(nn.Module):
    def __init__(self, features=8, width=16):
        super().__init__()
        self.inp, self.mixture, self.out = nn.Linear(features, width), MixtureLayer(width), nn.Linear(width, 1)

    def forward(self, x):
        h, balance = self.mixture(torch.tanh(self.inp(x)))
        return self.out(h).squeeze(1), balance


torch.manual_seed(127)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(30):
    if step == 22:
        nn.init.zeros_(model.mixture.router.weight)  # experts are re-used for a new task, the router starts afresh
    x = torch.randn(64, 8)
    y = torch.where(x[:, 0] > 0, x[:, 1] * 2, x[:, 2].sin())
    prediction, balance = model(x)
    loss = F.mse_loss(prediction, y) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, imbalance {balance.item():.5f}")
