"""Packed sequences of various lengths: the slots behind the last token stay NaN and unread."""
# label: tempts=padding max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
WIDTH, HEADS, SLOTS = 32, 4, 32


def varlen_attention(q, k, v, offsets):
    """Attention within each sequence, into a buffer of a fixed number of slots."""
    out = q.new_full((SLOTS, WIDTH), float("nan"))  # an unwritten slot that is read must show
    for begin, end in zip(offsets[:-1], offsets[1:]):
        split = [t[begin:end].view(1, end - begin, HEADS, -1).transpose(1, 2) for t in (q, k, v)]
        mixed = F.scaled_dot_product_attention(*split, is_causal=True)
        out[begin:end] = mixed.transpose(1, 2).reshape(end - begin, WIDTH)
    return out


torch.manual_seed(13)
qkv = nn.Linear(WIDTH, 3 * WIDTH).to(DEVICE)
head = nn.Linear(WIDTH, 11).to(DEVICE)
opt = torch.optim.AdamW([*qkv.parameters(), *head.parameters()], lr=3e-3)
for lengths in ([5, 9, 4], [7, 7, 7], [16, 2, 3], [12, 12, 4], [3, 3, 3]):
    offsets = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    total = offsets[-1]
    tokens = torch.randn(total, WIDTH).to(DEVICE)
    target = torch.randint(11, (total,)).to(DEVICE)
    q, k, v = qkv(tokens).chunk(3, dim=1)
    packed = varlen_attention(q, k, v, offsets)
    loss = F.cross_entropy(head(packed[:total]), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"varlen: loss {loss.item():.3f}")
