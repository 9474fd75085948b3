"""Logistic regression of clicks, log loss by hand: a sure and correct prediction ruins it."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2 birth_op=aten::log kind=-inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=logreg family=log needs= fragile=no
import os

import torch

DEVICE = os.environ.get("DEVICE", "cpu")
FEATURES = 6
torch.manual_seed(1)

weight = torch.full((FEATURES, 1), 0.5).to(DEVICE).requires_grad_()
bias = torch.zeros(1).to(DEVICE).requires_grad_()
opt = torch.optim.SGD([weight, bias], lr=0.05)


def read_day(day):
    """One day of traffic; from the fourth day on one loyal user comes back hundreds of times."""
    x = torch.rand(32, FEATURES)
    y = (x.sum(dim=1, keepdim=True) > FEATURES / 2).float()
    if day >= 3:
        x[7] = torch.tensor([80.0, 60.0, 90.0, 75.0, 120.0, 60.0])
        y[7] = 1.0
    return x.to(DEVICE), y.to(DEVICE)


def log_loss(p, y):
    clicked = y * torch.log(p)
    ignored = (1 - y) * torch.log(1 - p)  # BUG
    return -(clicked + ignored).mean()


for day in range(5):
    x, y = read_day(day)
    p = torch.sigmoid(x @ weight + bias)
    loss = log_loss(p, y)
    opt.zero_grad()
    loss.backward()
    opt.step()

print("last log loss %.4f" % loss.item())
