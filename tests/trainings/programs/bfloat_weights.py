"""All weights are bfloat16, updated by hand in float32 and rounded back; the rate warms up from next to nothing.

The bug: the gradients of one late step are zero, and an update is divided by their root mean square.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


@torch.no_grad()
def update(parameters, rate):
    for p in parameters:
        gradient = p.grad.float()
        direction = gradient / gradient.square().mean().sqrt()  # BUG
        p.copy_(p.float() - rate * direction)


def main():
    torch.manual_seed(15)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4)).bfloat16()
    truth = torch.randn(16, 4)
    for step in range(STEPS):
        x = torch.randn(32, 16)
        loss = nn.functional.cross_entropy(model(x.bfloat16()).float(), (x @ truth).argmax(1))
        if step == BUG_STEP:
            loss = loss * 0
        model.zero_grad()
        loss.backward()
        update(model.parameters(), 0.01 * min(1.0, (step + 1) / (STEPS // 10)) * (1 - step / STEPS))
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
