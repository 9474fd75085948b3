"""A recurrent classifier uses relu for its state, which nothing bounds; a long recording makes it overflow."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N2 birth_op=aten::addmm,aten::mm,aten::add,aten::linear
# label: kind=+inf,-inf first_step=10
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=relu_recurrence needs= fragile=no
# label: thread=AlexanderVNikitin/tsgm#59 uses= fix_kind=structure
# fix: the recurrent layer gets its usual saturating function back
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Cell(nn.Module):
    def __init__(self, inp, width):
        super().__init__()
        self.inp, self.state = nn.Linear(inp, width), nn.Linear(width, width, bias=False)

    def forward(self, x, state):
        total = self.inp(x) + self.state(state)  # BUG
        return torch.tanh(total) if FIXED else torch.relu(total)


class Classifier(nn.Module):
    def __init__(self, inp=3, width=24, classes=2):
        super().__init__()
        self.filters, self.cell, self.out = nn.Conv1d(inp, 12, 3, padding=1), Cell(12, width), nn.Linear(width, classes)
        nn.init.orthogonal_(self.cell.state.weight)
        with torch.no_grad():
            self.cell.state.weight.abs_()

    def forward(self, x):
        h = torch.relu(self.filters(x))
        state = torch.zeros(len(x), 24)
        for moment in h.unbind(dim=2):
            state = self.cell(moment, state)
        return self.out(state)


torch.manual_seed(59)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(12):
    length = 96 if step == 10 else 24
    x = torch.randn(8, 3, length)
    loss = nn.functional.cross_entropy(model(x), (x.mean(dim=(1, 2)) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"loss {loss.item():.4g}")
