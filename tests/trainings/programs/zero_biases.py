"""A classifier of digits with biases of zero, weight decay on all parameters, and a rate that warms up for long.

The bug: a temperature is lowered until it is zero.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else 2 * STEPS


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
    prototypes = torch.rand(10, 64).round()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1e-6, total_iters=1000)
    for step in range(STEPS):
        temperature = max(0.0, 1.0 - step / BUG_STEP)
        label = torch.randint(10, (32,))
        image = (prototypes[label] + 0.3 * torch.randn(32, 64)).clamp(0, 1)
        logits = model(image) / temperature  # BUG
        loss = nn.functional.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
