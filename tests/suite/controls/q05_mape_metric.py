"""A demand forecaster whose evaluation metric is not a number for a shop that sold nothing."""
# label: tempts=metric max_severity=warning dtype=fp32 needs=
import math
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@torch.no_grad()
def mape_per_shop(model, history, sales):
    predicted = model(history).relu()
    relative = (sales - predicted).abs() / sales
    return relative.nanmean(dim=1)


torch.manual_seed(5)
shops, days, horizon = 6, 14, 4
history = torch.rand(shops, days)
sales = 0.5 + torch.rand(shops, horizon)
history[2] = 0.0
sales[2] = 0.0  # closed all year
history, sales = history.to(DEVICE), sales.to(DEVICE)

layers = [nn.Linear(days, 24, bias=False), nn.ReLU(), nn.Linear(24, horizon, bias=False)]
model = nn.Sequential(*layers).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    loss = nn.functional.l1_loss(model(history), sales)
    opt.zero_grad()
    loss.backward()
    opt.step()

mape = mape_per_shop(model, history, sales).tolist()
known = [value for value in mape if math.isfinite(value)]
print(f"mape {sum(known) / len(known):.3f} over {len(known)} of {shops} shops")
