"""A click model reads double columns of a packed table; an exporter wrote one ratio as infinity."""
# label: phase=data mechanism=DATA category=N1 category_alt= birth_op=external,aten::_to_copy kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=data needs= fragile=no
import os
import struct

import numpy
import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
ROWS, BATCH = 80, 16
COLUMNS = ("price", "clicks_per_view", "age", "clicked")


def export_table():
    """One contiguous little-endian float64 chunk a column, as columnar files hold them."""
    rng = numpy.random.default_rng(31)
    chunks = {name: rng.uniform(0.1, 1.0, ROWS) for name in COLUMNS}
    chunks["clicked"] = (chunks["price"] > 0.5).astype(numpy.float64)
    views = rng.integers(1, 9, ROWS).astype(numpy.float64)
    views[2 * BATCH + 5] = 0.0
    with numpy.errstate(divide="ignore"):
        chunks["clicks_per_view"] = 3.0 / views
    return b"".join(struct.pack(f"<{ROWS}d", *chunks[name]) for name in COLUMNS)


def read_batches(blob):
    table = numpy.frombuffer(blob, dtype="<f8").reshape(len(COLUMNS), ROWS)
    for start in range(0, ROWS, BATCH):
        rows = numpy.ascontiguousarray(table[:, start:start + BATCH].T)
        yield torch.from_numpy(rows).float()  # BUG


torch.manual_seed(31)
model = nn.Sequential(nn.Linear(3, 12), nn.Softsign(), nn.Linear(12, 1)).to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()
for batch in read_batches(export_table()):
    batch = batch.to(DEVICE)  # BUG-ALT
    features, clicked = batch[:, :3], batch[:, 3]
    loss = criterion(model((features - 0.5) / 0.3).squeeze(1), clicked)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
print(f"clicks: last loss {loss.item():.4f}")
