"""Per-batch min-max scaling of a table; in one batch a sensor column is constant, 0 / 0."""
# label: phase=data mechanism=DIV0 category=N1 category_alt=N2 birth_op=aten::div kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=div0 needs= fragile=no
import os

import numpy as np
import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
COLUMNS = ["temperature", "pressure", "vibration", "valve"]


def sensor_log(hours=60):
    """Hourly readings of a pump; the valve position sticks at 0.5 from hour 36 to hour 47."""
    rng = np.random.default_rng(15)
    table = rng.normal(size=(hours, len(COLUMNS))).astype(np.float32)
    table[:, COLUMNS.index("valve")] = np.where(np.arange(hours) % 2, 0.25, 0.75)
    table[36:48, COLUMNS.index("valve")] = 0.5
    wear = (table @ np.array([0.3, -0.2, 0.8, 0.1], dtype=np.float32)).reshape(-1, 1)
    return torch.from_numpy(table), torch.from_numpy(wear)


def min_max(batch):
    low = batch.amin(dim=0)
    high = batch.amax(dim=0)
    return (batch - low) / (high - low)  # BUG


torch.manual_seed(15)
readings, wear = sensor_log()
model = nn.Sequential(nn.Linear(len(COLUMNS), 16), nn.ReLU(), nn.Linear(16, 1)).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.HuberLoss()

for start in range(0, len(readings), 12):
    rows = slice(start, start + 12)
    scaled = min_max(readings[rows].to(DEVICE))
    loss = loss_fn(model(scaled), wear[rows].to(DEVICE))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print("wear model, huber loss %.4f" % loss.item())
