"""A counting model with a logarithmic link, whose loss jumps by decades at outliers and recovers under clipping.

The bug: one late outlier is large enough for the exponential to overflow.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    truth = torch.randn(10, 1) * 0.3
    for step in range(STEPS):
        x = torch.randn(32, 10)
        count = torch.poisson((x @ truth).exp())
        if step % 400 == 399:
            x[0] *= 40
        if step == BUG_STEP:
            x[0] *= 1e5
        log_rate = model(x)
        rate = log_rate.abs().exp()  # BUG
        loss = (rate - count * log_rate).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
