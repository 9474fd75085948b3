"""Attention with exponential kernel, written by hand and without 1/sqrt(d): exp of a dot of 128."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N2 birth_op=aten::exp kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=exp needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
DIM, VOCAB, REPEAT = 128, 12, 11


class KernelAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Linear(DIM, DIM)

    def forward(self, h):
        scores = h @ h.transpose(-2, -1)
        kernel = torch.exp(scores)  # BUG
        mix = kernel / kernel.sum(-1, keepdim=True)
        return h + mix @ self.value(h)


class CopyModel(nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.randn(VOCAB, DIM) * 0.1
        table[REPEAT] = 1.0  # pretrained vector of the repeat token: norm sqrt(128)
        self.embed = nn.Embedding.from_pretrained(table, freeze=True)
        self.attention = KernelAttention()
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, tokens):
        return self.out(self.attention(self.embed(tokens)))


torch.manual_seed(10)
model = CopyModel().to(DEVICE)
opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
tokens = torch.randint(0, VOCAB - 1, (4, 3, 20))
tokens[2, 1, 7] = REPEAT  # first batch that holds the token
for batch in tokens:
    batch = batch.to(DEVICE)
    loss = nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p67 loss", loss.item())
