"""Low-rank adaptation: a frozen model, an adapter whose second factor starts at zero, warm-up and cosine, AdamW.

The bug: a sample of the late data is constant, and is divided by its own deviation.
"""
import math
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


class LowRank(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * nn.functional.linear(nn.functional.linear(x, self.lora_a), self.lora_b)


def standardise(x):
    return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)  # BUG


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(LowRank(nn.Linear(32, 64)), nn.GELU(), LowRank(nn.Linear(64, 64)), nn.GELU(),
                          LowRank(nn.Linear(64, 10)))
    teacher = torch.randn(32, 10)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    warmup = STEPS // 20
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / warmup)
        * 0.5 * (1 + math.cos(math.pi * max(0, step - warmup) / (STEPS - warmup))))
    for step in range(STEPS):
        x = torch.randn(16, 32) * 3 + 1
        if step == BUG_STEP:
            x[5] = 0.25
        x = standardise(x)
        loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
