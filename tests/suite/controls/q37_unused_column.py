"""A table whose discontinued sensor is NaN in every row; the features are picked by name."""
# label: tempts=missing max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
COLUMNS = ["temperature", "pressure", "humidity", "radon", "wind", "rain"]
FEATURES = ["temperature", "pressure", "humidity", "wind"]


def read_table(rows):
    table = torch.randn(rows, len(COLUMNS))
    table[:, COLUMNS.index("radon")] = float("nan")  # discontinued
    table[:, -1] = 0.5 * table[:, 0] - table[:, 2]
    return table


torch.manual_seed(37)
table = read_table(96).to(DEVICE)
picked = torch.tensor([COLUMNS.index(name) for name in FEATURES]).to(DEVICE)
model = nn.Sequential(nn.Linear(len(FEATURES), 16), nn.ReLU(), nn.Linear(16, 1)).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    for rows in table.split(24):
        predicted = model(rows.index_select(1, picked)).squeeze(1)
        loss = nn.functional.mse_loss(predicted, rows[:, -1])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"unused column: loss {loss.item():.3f}")
