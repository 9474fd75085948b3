"""A small language model whose attention makes its causal mask and its table of positions in forward."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
LENGTH, WIDTH = 192, 32


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.word = nn.Embedding(64, WIDTH)
        self.head = nn.Linear(WIDTH, 64)

    def forward(self, ids):
        q, k, v = self.qkv(self.word(ids)).chunk(3, -1)
        near = -(torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None, :]).abs().float().add(1).log()  # SLOW
        score = q @ k.transpose(1, 2) / math.sqrt(WIDTH) + near
        return self.head(score.softmax(-1) @ v)


model = Attention()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step in range(80):
    ids = torch.randint(0, 64, (1, LENGTH + 1))
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
