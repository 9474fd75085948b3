"""A causal language model with ALiBi slopes, whose future keys carry a bias of minus infinity."""
# label: tempts=mask max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
HEADS, WIDTH, LENGTH, VOCAB = 4, 32, 12, 29


def alibi_bias(heads, length):
    slopes = torch.tensor([2.0 ** -(8.0 * (h + 1) / heads) for h in range(heads)])
    position = torch.arange(length)
    distance = (position[None, :] - position[:, None]).float()
    bias = slopes[:, None, None] * distance
    future = torch.full((length, length), float("-inf")).triu(1)
    return bias + future


class AlibiBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, bias):
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
        weights = torch.softmax(scores + bias, dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, WIDTH)
        return x + self.out(mixed)


torch.manual_seed(1)
embed, block, head = nn.Embedding(VOCAB, WIDTH), AlibiBlock(), nn.Linear(WIDTH, VOCAB)
model = nn.ModuleList([embed, block, head]).to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
bias = alibi_bias(HEADS, LENGTH).to(DEVICE)
for step in range(6):
    tokens = torch.randint(VOCAB, (8, LENGTH + 1)).to(DEVICE)
    logits = head(block(embed(tokens[:, :-1]), bias))
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"alibi: loss {loss.item():.3f}")
