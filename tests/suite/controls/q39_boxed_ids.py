"""Row ids packed into the payload of double NaNs, and read back through an integer view."""
# label: tempts=bits max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
QUIET_NAN = 0x7FF8 << 48


def box(ids):
    """One column of doubles holds both numbers and ids, as scripting engines do it."""
    return (ids | QUIET_NAN).view(torch.float64)


def unbox(column):
    return column.view(torch.int64) & 0xFFFF_FFFF


torch.manual_seed(39)
ids = torch.randint(40, (128,))
column = box(ids).to(DEVICE)
rating = (ids % 5).float().to(DEVICE)
table = nn.Embedding(40, 8).to(DEVICE)
head = nn.Linear(8, 1).to(DEVICE)
opt = torch.optim.Adagrad([*table.parameters(), *head.parameters()], lr=0.1)
for step in range(5):
    rows = torch.randperm(128)[:32].to(DEVICE)
    index = unbox(column[rows])
    loss = (head(table(index)).squeeze(1) - rating[rows]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"boxed ids: loss {loss.item():.3f}")
