"""Attention that merges its heads with a copy that the next view needs; the gradients are clipped."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
qkv, out = nn.Linear(64, 192), nn.Linear(64, 64)
parameters = [*qkv.parameters(), *out.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=True)
for step in range(24):
    x = torch.randn(8, 64, 64)
    q, k, v = (part.view(8, 64, 4, 16).transpose(1, 2) for part in qkv(x).chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).contiguous().view(8, 64, 64)
    loss = (out(y) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
