"""Contrastive training of a small encoder on pairs of images.

The third batch pairs an image with itself. Its distance is exactly 0, where the derivative of the root is
infinite: the loss is fine, the gradients are not.
"""
import torch
from torch import nn


def distance(a, b):
    """Euclidean, one value a pair."""
    return (a - b).pow(2).sum(1).sqrt()  # BUG


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
left, right = torch.randn(5, 10, 8), torch.randn(5, 10, 8)
right[2, 6] = left[2, 6]
same = torch.arange(10) % 2 == 0
for step in range(5):
    apart = distance(encoder(left[step]), encoder(right[step]))
    loss = torch.where(same, apart, (2.0 - apart).clamp(min=0.0)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
