"""Local descriptors of two views are compared by a distance matrix; one pair is equal, and its root is at zero."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2,N4 birth_op=aten::div kind=+inf,-inf,nan
# label: first_step=18
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=descriptor_distance needs= fragile=no
# label: thread=kornia/kornia#4233 uses=kornia fix_kind=where
# fix: squared distances that are zero are replaced before the root, and the distance is set to zero there
import os

import kornia
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def distances(a, b):
    """Euclidean, between all rows; written out because the fused function lacks half precision."""
    squared = a.square().sum(dim=1)[:, None] + b.square().sum(dim=1) - 2.0 * a @ b.T
    squared = squared.clamp(min=0.0)
    if FIXED:
        touching = squared == 0
        return squared.masked_fill(touching, 1.0).sqrt().masked_fill(touching, 0.0)
    return squared.sqrt()  # BUG


class Describer(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, width, 3), nn.ReLU(), nn.Flatten(),
                                  nn.Linear(width * 16, 16))

    def forward(self, patch):
        return self.body(patch)


def views(step):
    """Patches of corners, and the same corners seen again, a bit blurred and noisy."""
    patches = torch.rand(12, 1, 8, 8)
    again = kornia.filters.gaussian_blur2d(patches, (3, 3), (0.8, 0.8)) + 0.01 * torch.randn(12, 1, 8, 8)
    if step == 18:
        patches[5], again[5] = 0.0, 0.0  # outside of both pictures
    return patches, again


torch.manual_seed(4233)
describer = Describer()
nn.init.zeros_(describer.body[-1].bias)
optimizer = torch.optim.SGD(describer.parameters(), lr=0.01)
for step in range(24):
    patches, again = views(step)
    matrix = distances(describer(patches), describer(again))  # BUG-ALT
    near = matrix.diagonal()
    far = (matrix + 10.0 * torch.eye(len(matrix))).min(dim=1).values
    loss = torch.relu(1.0 + near - far).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
