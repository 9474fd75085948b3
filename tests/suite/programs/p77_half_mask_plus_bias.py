"""Attention in half: finfo.min plus a distance bias below -16 is -inf, for whole padding rows."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N7 birth_op=aten::add kind=-inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp16 model=transformer family=mask needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def distance_bias(length, slope):
    position = torch.arange(length)
    return -slope * (position[:, None] - position[None, :]).abs().float() - slope


class BiasedAttention(nn.Module):
    def __init__(self, dim=8, slope=24.0):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.slope = slope

    def forward(self, x, valid):
        q, k, v = self.qkv(x).chunk(3, -1)
        bias = distance_bias(x.shape[1], self.slope).half().to(x.device)
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + bias
        if not valid.all():
            pair = valid[:, :, None] & valid[:, None, :]
            mask = torch.zeros(pair.shape).half().to(x.device)
            mask = mask.masked_fill(~pair, torch.finfo(torch.float16).min)
            scores = scores + mask  # BUG
        return x + scores.softmax(-1) @ v


torch.manual_seed(20)
layer = BiasedAttention().half().to(DEVICE)
head = nn.Linear(8, 2).half().to(DEVICE)
opt = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=1e-2)
for step in range(4):
    x = torch.randn(2, 6, 8)
    valid = torch.ones(2, 6, dtype=torch.bool)
    if step >= 2:
        valid[1, 4:] = False  # first batch with a padded sentence
    labels = torch.randint(0, 2, (2,)).to(DEVICE)
    hidden = layer(x.half().to(DEVICE), valid.to(DEVICE))
    loss = nn.functional.cross_entropy(head(hidden.mean(1)).float(), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p77 loss", loss.item())
