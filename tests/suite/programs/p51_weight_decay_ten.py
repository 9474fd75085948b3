"""Momentum SGD with weight_decay=10 and lr=1 multiplies the weights until decay overflows."""
# label: phase=optimizer mechanism=HYPER category=N5 category_alt= birth_op=aten::add,aten::_foreach_add,aten::_foreach_add_ kind=+inf,-inf first_step=42
# label: severity=error loss_stays_finite=no dtype=fp32 model=linear family=divergence needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class QuantileRegression(nn.Module):
    """Predicts the 0.9 quantile of a demand from scaled features."""

    def __init__(self, features, quantile=0.9):
        super().__init__()
        self.weight = nn.Parameter(torch.full((features,), 0.5))
        self.quantile = quantile

    def forward(self, x):
        return x @ self.weight

    def loss(self, x, y):
        gap = y - self(x)
        return torch.maximum(self.quantile * gap, (self.quantile - 1.0) * gap).mean()


torch.manual_seed(51)
x = 0.01 * torch.rand(64, 6)
y = x.sum(dim=1) + 0.001 * torch.randn(64)
x, y = x.to(DEVICE), y.to(DEVICE)
model = QuantileRegression(features=6).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9, weight_decay=10.0)
for step in range(45):
    opt.zero_grad()
    loss = model.loss(x, y)
    loss.backward()
    opt.step()  # BUG
print(f"quantile: last loss {loss.item():.4g}")
