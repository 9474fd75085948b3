"""A small transformer under bfloat16 autocast on sequences of different lengths, the loss a mean over some tokens.

The bug: all tokens of one late batch are padding.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


class Model(nn.Module):
    def __init__(self, width=32, words=40):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.zeros(12, width))
        self.qkv = nn.Linear(width, 3 * width)
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embed(tokens) + self.place
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + self.mlp(self.norm(x)))


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(STEPS):
        start = torch.randint(40, (8, 1))
        tokens = (start + 3 * torch.arange(13)) % 40
        counts = torch.arange(12) < torch.randint(2, 13, (8, 1))
        if step == BUG_STEP:
            counts = torch.zeros_like(counts)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(tokens[:, :12])
        each = nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        loss = (each * counts.flatten()).sum() / counts.sum()  # BUG
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in model.parameters()).item():.17g}")


main()
