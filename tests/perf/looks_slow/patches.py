"""A vision transformer: patches, heads and a mixer over places are other orders of the same numbers, copied where views
do not reach."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
cut, qkv, out = nn.Linear(48, 32), nn.Linear(32, 96), nn.Linear(32, 32)
places, head = nn.Linear(64, 64), nn.Linear(32, 10)
layers = nn.ModuleList([cut, qkv, out, places, head])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
for step in range(24):
    images = torch.rand(16, 3, 32, 32)
    x = images.view(16, 3, 8, 4, 8, 4).permute(0, 2, 4, 1, 3, 5).contiguous().view(16, 64, 48)
    x = cut(x)
    q, k, v = qkv(x).view(16, 64, 3, 4, 8).permute(2, 0, 3, 1, 4).contiguous().unbind(0)
    weights = (q @ k.transpose(-2, -1) / 8 ** 0.5).softmax(-1)
    x = x + out((weights @ v).transpose(1, 2).contiguous().view(16, 64, 32))
    x = x + places(x.transpose(1, 2).contiguous()).transpose(1, 2)
    loss = F.cross_entropy(head(x.mean(1)), torch.randint(0, 10, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
