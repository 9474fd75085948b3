"""A rotation-equivariant batch norm rescales vectors by their own length; a point at the origin has none."""
# label: phase=forward mechanism=DIV0 category=N7 category_alt=N2,N1 birth_op=aten::div kind=nan first_step=26
# label: severity=error loss_stays_finite=no dtype=fp32 model=pointnet family=vector_norm_layer needs= fragile=no
# label: thread=FlyingGiraffe/vnn#4 uses= fix_kind=eps
# fix: a small number is added to the length in the normalisation layer, and the length is taken by norm()
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class VectorBatchNorm(nn.Module):
    """Batch norm over the lengths of 3-vectors, which keep their directions."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.eps = 1e-6 if FIXED else 0.0

    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=2) + self.eps
        return x / length.unsqueeze(2) * self.norm(length).unsqueeze(2)  # BUG


class VectorLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.mix = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x):
        return self.mix(x.transpose(1, -1)).transpose(1, -1)


class EquivariantNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.first, self.norm = VectorLinear(1, 8), VectorBatchNorm(8)
        self.second, self.head = VectorLinear(8, 8), nn.Linear(8, classes)

    def forward(self, points):
        x = self.norm(self.first(points.transpose(1, 2).unsqueeze(1)))
        x = self.second(x).mean(dim=-1)
        return self.head(torch.linalg.vector_norm(x, dim=2))


def shapes(step, size=12, points=20):
    label = torch.arange(size) % 3
    cloud = torch.randn(size, points, 3) * torch.tensor([0.3, 1.0, 2.0])[label][:, None, None]
    if step == 26:
        cloud[4, 0] = 0.0  # a scan whose first point is the sensor itself
    return cloud + 0.0, label


torch.manual_seed(3)
net = EquivariantNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(28):
    cloud, label = shapes(step)
    loss = nn.functional.cross_entropy(net(cloud), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
