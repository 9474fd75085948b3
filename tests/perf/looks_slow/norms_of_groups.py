"""A norm over groups of channels, which stand in the second dimension: the norm itself copies its input for that."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
mix = nn.Linear(48, 48)
optimizer = torch.optim.SGD(mix.parameters(), lr=0.01)
for step in range(24):
    x = torch.randn(32, 96, 48)
    normed = F.group_norm(mix(x).transpose(1, 2), 8).transpose(1, 2).contiguous()
    loss = (normed.tanh() - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
