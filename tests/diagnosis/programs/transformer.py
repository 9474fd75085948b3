"""A small language model by AdamW with warm-up and clipping. The first argument is the fault that it has."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

FAULT = sys.argv[1] if len(sys.argv) > 1 else "healthy"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 100
WORDS, WIDTH, LENGTH = 17, 32, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.down(F.relu(self.up(self.norm2(x))))  # ND105


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)
        self.register_buffer("mask", torch.triu(torch.full((LENGTH, LENGTH), float("-inf")), 1))

    def forward(self, text):
        x = self.words(text) + self.places
        for block in self.blocks:
            x = block(x, self.mask)
        logits = self.head(x).flatten(0, 1)
        return torch.softmax(logits, -1) if FAULT == "ND102" else logits  # ND102


torch.manual_seed(3)
model = Model()
if FAULT == "ND105":
    for block in model.blocks:
        nn.init.constant_(block.up.bias, -100.0)
rate = {"ND107": 30.0, "ND108": 1e-13}.get(FAULT, 3e-3)
held = Model() if FAULT == "ND104" else model
optimizer = torch.optim.AdamW(held.parameters(), lr=rate, foreach=True)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
for step in range(STEPS):
    start = torch.randint(0, WORDS, (16, 1))
    text = (start + 3 * torch.arange(LENGTH + 1)) % WORDS
    output = model(text[:, :-1])
    target = text[:, 1:].flatten()
    loss = (F.nll_loss if FAULT == "ND103" else F.cross_entropy)(output, target)  # ND103
    if FAULT != "ND101":
        for parameter in model.parameters():
            parameter.grad = None
    loss.backward()  # ND101
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()  # ND104 ND107 ND108
    warm_up.step()
print(f"{loss.item():.3f}")
