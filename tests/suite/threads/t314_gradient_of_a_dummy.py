"""A lookup that applies its own gradients has a dummy input for autograd, and answers it with fresh memory."""
# label: phase=backward mechanism=UNINIT category=N9 category_alt=N3,N6
# label: birth_op=aten::empty,aten::new_empty,aten::empty_like,aten::fill_ kind=nan first_step=0
# label: severity=error loss_stays_finite=yes dtype=fp32 model=embedding family=dummy_gradient needs= fragile=no
# label: thread=meta-pytorch/torchrec#2648 uses= fix_kind=init
# fix: the gradient of the dummy is made of zeros
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
torch.use_deterministic_algorithms(True)  # fresh memory is filled with NaN, so the run repeats


class Lookup(torch.autograd.Function):
    """Rows of a table that is updated here, outside of the optimizer."""

    @staticmethod
    def forward(ctx, dummy, table, rows, rate):
        ctx.table, ctx.rows, ctx.rate = table, rows, rate
        return table[rows]

    @staticmethod
    def backward(ctx, grad):
        ctx.table.index_add_(0, ctx.rows, grad, alpha=-ctx.rate)
        dummy = torch.zeros(1) if FIXED else torch.empty(1)  # BUG
        return dummy, None, None, None


class Sharded(nn.Module):
    def __init__(self, rows=40, width=12):
        super().__init__()
        self.dummy = nn.Parameter(torch.zeros(1))
        self.register_buffer("table", 0.1 * torch.randn(rows, width))

    def forward(self, rows):
        return Lookup.apply(self.dummy, self.table, rows, 0.1)


torch.manual_seed(2648)
table, head = Sharded(), nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
parameters = [*table.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.05)
for step in range(6):
    rows = torch.randint(0, 40, (32,))
    click = (rows % 3 == 0).float()
    loss = nn.functional.binary_cross_entropy_with_logits(head(table(rows)).squeeze(-1), click)
    optimizer.zero_grad()
    loss.backward()  # BUG-ALT
    optimizer.step()
print(f"loss {loss.item():.4f}, dummy {table.dummy.item()}")
