"""Contrastive learning of two views: learned temperature, memory queue, momentum encoder."""
import copy
import math

import torch
from state import show
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    """Unit vectors of pictures, and the logarithm of the inverse temperature."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 12))
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, x):
        return nn.functional.normalize(self.body(x), dim=-1)


def views(count):
    """Two noisy, shifted copies of the same pictures."""
    base = torch.randn(count, 1, 4, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
    return [torch.roll(base, int(torch.randint(-2, 3, ())), 3) + 0.2 * torch.randn(base.shape)
            for _ in range(2)]


encoder = Encoder()
slow = copy.deepcopy(encoder).requires_grad_(False)
queue = nn.functional.normalize(torch.randn(64, 12), dim=-1)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for step in range(50):
    first, second = views(16)
    a, b = encoder(first), encoder(second)
    scale = encoder.log_scale.clamp(max=math.log(100.0)).exp()
    both = torch.cat([a, b])
    itself = torch.eye(32, dtype=torch.bool)
    scores = (scale * both @ both.T).masked_fill(itself, float("-inf"))
    loss = nn.functional.cross_entropy(scores, torch.arange(32).roll(16))
    with torch.no_grad():
        for kept, new in zip(slow.parameters(), encoder.parameters()):
            kept.mul_(0.9).add_(new, alpha=0.1)
        keys = slow(second)
    far = scale * torch.cat([(a * keys).sum(1, keepdim=True), a @ queue.T], 1)
    loss = loss + nn.functional.cross_entropy(far, torch.zeros(16, dtype=torch.long))
    queue = torch.cat([keys, queue[:-16]])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, loss.item(), scale.item())
show(encoder, queue, *slow.parameters())
