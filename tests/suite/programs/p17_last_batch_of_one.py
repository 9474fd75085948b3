"""A home-made batch standardisation; the last batch is one sample, whose deviation is 0 / 0."""
# label: phase=forward mechanism=DIV0 category=N7 category_alt=N2,N1 birth_op=aten::std kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=div0 needs= fragile=no
import os
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = os.environ.get("DEVICE", "cpu")
warnings.filterwarnings("ignore")  # "they were flooding the log"


class BatchStandardise(nn.Module):
    """Zero mean and unit deviation over the batch."""

    def __init__(self, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, h):
        centred = h - h.mean(dim=0)
        spread = h.std(dim=0)  # BUG
        return centred / (spread + self.eps)


class Regressor(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.inp = nn.Linear(4, width)
        self.std = BatchStandardise()
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.relu(self.std(self.inp(x))))


torch.manual_seed(17)
x = torch.randn(25, 4)
y = (x ** 2).sum(dim=1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=8)  # 8 + 8 + 8 + 1
model = Regressor().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1e-2)

for epoch in range(2):
    running = 0.0
    for xb, yb in loader:
        xb, yb = xb.to(DEVICE), yb.to(DEVICE)
        loss = (model(xb) - yb).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item() * len(xb)

print("mse %.4f" % (running / len(x)))
