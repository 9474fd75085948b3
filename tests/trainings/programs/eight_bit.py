"""Values kept in float8 with delayed scaling: scales follow the largest values of the steps before.

The bug: nothing arrives in one late step, the largest value on record is zero, and so is what a scale is divided by.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
LARGEST = torch.finfo(torch.float8_e4m3fn).max


class Kept(nn.Module):
    """A layer whose input is kept in float8; the scale is computed anew every `interval` steps from the last maxima."""

    def __init__(self, fan_in, fan_out, interval):
        super().__init__()
        self.layer = nn.Linear(fan_in, fan_out)
        self.interval = interval
        self.count = 0
        self.register_buffer("history", torch.zeros(16))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x):
        with torch.no_grad():
            self.history = self.history.roll(1)
            self.history[0] = x.abs().max()
            kept = (x * self.scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
            y = kept.to(torch.float32) / self.scale
            self.count += 1
            if self.count % self.interval == 0:
                self.scale = LARGEST / self.history.max()  # BUG
        return self.layer(x + (y - x).detach())


def main():
    torch.manual_seed(14)
    torch.set_num_threads(1)
    model = nn.Sequential(Kept(16, 64, 1), nn.ReLU(), Kept(64, 64, 8), nn.ReLU(), Kept(64, 4, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    truth = torch.randn(16, 4)
    for step in range(STEPS):
        x = (2000 * torch.randn(32, 16)).relu()
        if step == BUG_STEP:
            x.zero_()
            model[0].history.zero_()
        loss = nn.functional.cross_entropy(model(x) / 100, (x @ truth).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
