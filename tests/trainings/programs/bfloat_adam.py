"""All weights are bfloat16, with torch's AdamW: long warm-up, then a rate large enough for the type.

The bug: a late batch has a row of words that are all masked; a softmax over nothing is NaN.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


class Pooled(nn.Module):
    """Words are averaged with weights of their own."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.score = nn.Linear(32, 1)
        self.head = nn.Linear(32, 5)

    def forward(self, words, there):
        x = self.embed(words)
        score = self.score(x).squeeze(2).masked_fill(~there, float("-inf"))
        weight = score.softmax(1)  # BUG
        return self.head((weight.unsqueeze(2) * x).sum(1))


def main():
    torch.manual_seed(16)
    torch.set_num_threads(1)
    model = Pooled().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1e-4, total_iters=STEPS // 5)
    for step in range(STEPS):
        words = torch.randint(50, (16, 12))
        there = torch.arange(12) < torch.randint(1, 13, (16, 1))
        if step == BUG_STEP:
            there[3] = False
        loss = nn.functional.cross_entropy(model(words, there).float(), words[:, 0] % 5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
