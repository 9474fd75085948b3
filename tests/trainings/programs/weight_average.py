"""Stochastic weight averaging of a network with batch norm, its statistics estimated anew.

The bug: the last batch of a late epoch has one sample, whose deviation over the batch does not exist.
"""
import sys

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


def features(x):
    spread = x.std(0)  # BUG
    return torch.cat([x / 2, (spread + 0.1).log().expand(len(x), -1)], 1)


def main():
    torch.manual_seed(10)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    constant = SWALR(optimizer, swa_lr=0.02, anneal_epochs=100)
    centres = torch.randn(4, 8)
    for step in range(STEPS):
        label = torch.randint(4, (32,))
        x = centres[label] + torch.randn(32, 8)
        if step == BUG_STEP:
            x, label = x[:1].repeat(1, 1), label[:1]
            model.eval()
        loss = nn.functional.cross_entropy(model(features(x)), label)
        model.train()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step > STEPS // 2:
            constant.step()
            if step % 10 == 0:
                averaged.update_parameters(model)
        else:
            cosine.step()
    update_bn([features(centres[torch.randint(4, (32,))] + torch.randn(32, 8)) for _ in range(20)], averaged)
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in averaged.parameters()).item():.17g}")


main()
