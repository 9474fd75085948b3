"""Tabular data with missing cells, filled with the column means before the network sees them."""
# label: tempts=missing max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class MeanImputer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))

    def fit(self, table):
        self.mean.copy_(torch.nanmean(table, dim=0))
        return self

    def forward(self, table):
        missing = torch.isnan(table)
        filled = torch.where(missing, self.mean, table)
        return torch.cat([filled, missing.to(table.dtype)], dim=1)


torch.manual_seed(6)
table = torch.randn(64, 8)
label = (table[:, 0] > 0).long()
table[torch.rand(64, 8) < 0.2] = float("nan")
table, label = table.to(DEVICE), label.to(DEVICE)

imputer = MeanImputer(8).to(DEVICE).fit(table)
net = nn.Sequential(imputer, nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 2)).to(DEVICE)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
for epoch in range(3):
    for rows in torch.arange(64).split(16):
        rows = rows.to(DEVICE)
        loss = nn.functional.cross_entropy(net(table[rows]), label[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"imputer: loss {loss.item():.3f}")
