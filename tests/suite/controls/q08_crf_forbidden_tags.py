"""A linear-chain CRF in log space whose forbidden transitions score minus infinity."""
# label: tempts=logspace max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
O, B, I = range(3)
MINUS_INF = float("-inf")


class Crf(nn.Module):
    def __init__(self):
        super().__init__()
        self.transition = nn.Parameter(0.1 * torch.randn(3, 3))
        forbidden = torch.zeros(3, 3, dtype=torch.bool)
        forbidden[O, I] = True  # an entity cannot begin with its inside
        self.register_buffer("forbidden", forbidden)

    def log_partition(self, emission, move):
        alpha = emission[:, 0].clone()
        alpha[:, I] = MINUS_INF
        for t in range(1, emission.shape[1]):
            alpha = torch.logsumexp(alpha[:, :, None] + move, dim=1) + emission[:, t]
        return torch.logsumexp(alpha, dim=1)

    def forward(self, emission, tags):
        move = self.transition.masked_fill(self.forbidden, MINUS_INF)
        score = emission.gather(2, tags[:, :, None])[:, :, 0].sum(1)
        score = score + move[tags[:, :-1], tags[:, 1:]].sum(1)
        return (self.log_partition(emission, move) - score).mean()


torch.manual_seed(8)
sentences = torch.randint(50, (4, 7)).to(DEVICE)
tags = torch.tensor([[O, B, I, I, O, B, O], [B, I, O, O, B, B, I],
                     [O, O, O, B, I, O, O], [B, B, I, I, I, O, O]]).to(DEVICE)
tagger = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 3)).to(DEVICE)
crf = Crf().to(DEVICE)
opt = torch.optim.Adam([*tagger.parameters(), *crf.parameters()], lr=0.05)
for step in range(8):
    loss = crf(tagger(sentences), tags)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"crf: loss {loss.item():.3f}")
