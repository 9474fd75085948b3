"""A training loop that looks at its loss and skips a batch whose loss is not finite."""
# label: tempts=guard max_severity=warning dtype=fp32 needs=
import math
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def poisson_nll(rate, count):
    return (rate - count * rate.log() + torch.lgamma(count + 1)).mean()


def batches():
    for index in range(8):
        x = torch.rand(16, 4)
        if index == 3:
            x[5] = 1e4  # a reading in the wrong unit: exp overflows
        yield x.to(DEVICE), torch.poisson(x.sum(1).clamp(max=10)).to(DEVICE)


torch.manual_seed(30)
weight = nn.Parameter(torch.full((4,), 0.3).to(DEVICE))
bias = nn.Parameter(torch.zeros(()).to(DEVICE))
opt = torch.optim.Adam([weight, bias], lr=1e-2)
skipped, total = 0, 0.0
for x, count in batches():
    loss = poisson_nll(torch.exp(x @ weight + bias), count)
    value = loss.item()
    if not math.isfinite(value):
        skipped += 1
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += value
print(f"guarded loop: {skipped} skipped, mean loss {total / (8 - skipped):.3f}")
