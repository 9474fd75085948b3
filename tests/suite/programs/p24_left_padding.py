"""Causal and padding masks together: with left padding the first rows may attend to nothing."""
# label: phase=forward mechanism=INDET category=N7 category_alt=N2,N1 birth_op=aten::_softmax kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=mask needs= fragile=no
import math
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
PAD, VOCAB, DIM = 0, 20, 16


class CausalAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, real):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        causal = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~causal, float("-inf"))  # INTENDED
        scores = scores.masked_fill(~real[:, None, :], float("-inf"))  # INTENDED
        attention = torch.softmax(scores, dim=-1)  # BUG
        return x + self.proj(attention @ v)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.blocks = nn.ModuleList([CausalAttention(DIM) for _ in range(2)])
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB))

    def forward(self, ids):
        h = self.tokens(ids)
        for block in self.blocks:
            h = block(h, ids != PAD)
        return self.head(h)


def collate(lengths, width=8):
    ids = torch.zeros(len(lengths), width, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, width - length:] = torch.randint(1, VOCAB, (length,))
    return ids


torch.manual_seed(24)
model = Decoder().to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for lengths in ([8, 8, 8], [8, 8, 8], [8, 5, 8], [8, 8, 7]):
    ids = collate(lengths).to(DEVICE)
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], ignore_index=PAD)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("lm loss %.4f" % loss.item())
