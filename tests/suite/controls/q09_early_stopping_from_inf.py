"""Early stopping: the best loss so far starts at infinity and is replaced by the first epoch."""
# label: tempts=accumulator max_severity=none dtype=fp32 needs=
import copy
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class EarlyStopping:
    def __init__(self, patience, device):
        self.patience, self.bad_epochs, self.state = patience, 0, None
        self.best = torch.full((), float("inf"), device=device)

    def update(self, loss, model):
        better = loss < self.best
        self.best = torch.minimum(self.best, loss)
        if better:
            self.bad_epochs, self.state = 0, copy.deepcopy(model.state_dict())
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


torch.manual_seed(9)
x = torch.linspace(-2, 2, 64)[:, None]
y = torch.sin(2 * x) + 0.1 * torch.randn(64, 1)
x, y = x.to(DEVICE), y.to(DEVICE)
train, valid = slice(0, 48), slice(48, 64)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
stopper = EarlyStopping(patience=3, device=DEVICE)
best_before = []
for epoch in range(12):
    opt.zero_grad()
    nn.functional.mse_loss(model(x[train]), y[train]).backward()
    opt.step()
    with torch.no_grad():
        validation = nn.functional.mse_loss(model(x[valid]), y[valid])
    best_before.append(stopper.best.item())
    if stopper.update(validation, model):
        break
model.load_state_dict(stopper.state)
print(f"early stopping: best went from {best_before[0]} to {stopper.best.item():.3f}")
