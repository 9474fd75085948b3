"""Weights are pruned by magnitude every few hundred steps; rows are scaled by how many of their weights are left.

The bug: late in the run one row loses its last weight.
"""
import sys

import torch
from torch import nn
from torch.nn.utils import prune

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


class Rows(nn.Linear):
    def forward(self, x):
        kept = (self.weight != 0).sum(1)
        weight = self.weight * (24 / kept.float()).sqrt().unsqueeze(1)  # BUG
        return nn.functional.linear(x, weight, self.bias)


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    model = nn.Sequential(Rows(24, 48), nn.ReLU(), nn.Linear(48, 3))
    prune.random_unstructured(model[0], "weight", amount=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    truth = torch.randn(24, 3)
    for step in range(STEPS):
        if step % 500 == 499 and step < BUG_STEP:
            prune.l1_unstructured(model[0], "weight", amount=0.05)
        if step == BUG_STEP:
            mask = torch.ones(48, 24)
            mask[7] = 0
            prune.custom_from_mask(model[0], "weight", mask)
        x = torch.randn(32, 24)
        loss = nn.functional.cross_entropy(model(x), (x @ truth).argmax(1), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
