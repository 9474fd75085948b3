"""Quantisation-aware training: weights and activations are rounded to eight bits, gradients pass straight through.

The bug: the activations of one late batch are all zero, and so is the scale that they are divided by.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        scale = x.abs().max() / 127
        return (x / scale).round().clamp(-128, 127) * scale  # BUG

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Quantised(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(Round.apply(x), Round.apply(self.weight), self.bias)


def main():
    torch.manual_seed(12)
    torch.set_num_threads(1)
    model = nn.Sequential(Quantised(16, 64), nn.ReLU6(), Quantised(64, 64), nn.ReLU6(), Quantised(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    truth = torch.randn(16, 5)
    for step in range(STEPS):
        x = torch.rand(32, 16)
        if step == BUG_STEP:
            x.zero_()
        loss = nn.functional.cross_entropy(model(x), ((x - 0.5) @ truth).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
