"""A triplet embedding under a fractional (p = 0.5) distance meets a duplicated record."""
# label: phase=backward mechanism=SING category=N3 category_alt=N4 birth_op=aten::pow kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=slope needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
P = 0.5


def minkowski(a, b):
    """The fractional distance, which separates points of many dimensions better than p = 2."""
    gaps = (a - b).abs()
    total = gaps.pow(P).sum(dim=-1)  # BUG
    return (total + 1e-6).pow(1.0 / P)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(7, 20), nn.Tanh(), nn.Linear(20, 5))

    def forward(self, x):
        return self.layers(x)


def triplets(steps, size):
    """(anchor, positive, negative) batches; the third one has a duplicated record."""
    for step in range(steps):
        anchor = torch.randn(size, 7)
        positive = anchor + 0.1 * torch.randn(size, 7)
        if step == 2:
            positive[4] = anchor[4]
        yield anchor.to(DEVICE), positive.to(DEVICE), torch.randn(size, 7).to(DEVICE)


def main():
    torch.manual_seed(40)
    embed = Embedder().to(DEVICE)
    opt = torch.optim.SGD(embed.parameters(), lr=1e-4)
    for anchor, positive, negative in triplets(steps=4, size=9):
        points = embed(torch.cat([anchor, positive, negative])).view(3, 9, 5)
        near, far = minkowski(points[0], points[1]), minkowski(points[0], points[2])
        loss = torch.relu(near - far + 100.0).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"triplets: last loss {loss.item():.4f}")


main()
