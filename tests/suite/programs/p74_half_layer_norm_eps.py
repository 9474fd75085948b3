"""LayerNorm by hand in half with eps 1e-12, which is zero there; a padding row is constant."""
# label: phase=forward mechanism=UDF category=N8 category_alt=N7,N2 birth_op=aten::rsqrt kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp16 model=transformer family=half needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class HandLayerNorm(nn.Module):
    """Ported from a BERT code base, eps included."""

    def __init__(self, dim, eps=1e-12):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        variance = (centred * centred).mean(-1, keepdim=True)
        shifted = variance + self.eps  # PRE
        inverse = torch.rsqrt(shifted)  # BUG
        return centred * inverse * self.weight + self.bias


class Tagger(nn.Module):
    def __init__(self, vocab=30, dim=16, tags=5):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.norm = HandLayerNorm(dim)
        self.out = nn.Linear(dim, tags)

    def forward(self, tokens):
        return self.out(self.norm(self.embed(tokens)))


torch.manual_seed(17)
tagger = Tagger().half().to(DEVICE)
opt = torch.optim.SGD(tagger.parameters(), lr=1e-2)
tokens = torch.randint(1, 30, (4, 2, 7))
tokens[2:, 1, 5:] = 0  # from the third batch on a sentence is shorter: zero vectors
tags = torch.randint(0, 5, (4, 2, 7))
for ids, gold in zip(tokens, tags):
    logits = tagger(ids.to(DEVICE)).float()
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), gold.flatten().to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p74 loss", loss.item())
