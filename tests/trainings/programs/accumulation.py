"""Gradients of four small batches are added up, then divided by their norm.

The bug: no sample of one late step counts, so all gradients are zero and so is their norm.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.Dropout(0.1), nn.Linear(40, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    truth = torch.randn(20, 1)
    for step in range(STEPS):
        total = 0.0
        for _ in range(4):
            x = torch.randn(8, 20)
            counts = (torch.rand(8, 1) < 0.7).float()
            if step == BUG_STEP:
                counts.zero_()
            loss = ((model(x) - (x @ truth).tanh()).square() * counts).mean() / 4
            loss.backward()
            total += loss.item()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        for p in model.parameters():
            p.grad = p.grad / norm  # BUG
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * (1 - step / STEPS)
        optimizer.step()
        optimizer.zero_grad()
    print(f"{total:.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
