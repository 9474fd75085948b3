"""A regression whose weights are averaged exponentially, with a correction for the start, and evaluated at times.

The bug: the counter of the correction is set back late in the run, so the correction divides by zero.
"""
import copy
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
DECAY = 0.999


class Average:
    def __init__(self, model):
        self.sums = [torch.zeros_like(p) for p in model.parameters()]
        self.count = 0

    def update(self, model):
        with torch.no_grad():
            for s, p in zip(self.sums, model.parameters()):
                s.lerp_(p, 1 - DECAY)
        self.count += 1

    def copy_to(self, model):
        with torch.no_grad():
            for s, p in zip(self.sums, model.parameters()):
                p.copy_(s / (1 - DECAY ** self.count))  # BUG


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 1))
    average = Average(model)
    evaluated = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    truth = torch.randn(16, 1)
    for step in range(STEPS):
        x = torch.randn(32, 16)
        loss = nn.functional.mse_loss(model(x), (x @ truth).sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        if step == BUG_STEP:
            average.count = 0
        if step % 50 == 49 or step == BUG_STEP:
            average.copy_to(evaluated)
            with torch.no_grad():
                kept = nn.functional.mse_loss(evaluated(x), (x @ truth).sin()).item()
    print(f"{loss.item():.9g} {kept:.9g}")


main()
