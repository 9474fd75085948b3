"""A polygon regressor is scored on the log ratio of areas; one outline is a straight line."""
# label: phase=forward mechanism=DIV0 category=N1 category_alt=N4,N2 birth_op=aten::div kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=data needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def shoelace(points):
    """The area of each polygon of a (batch, corners, 2) tensor."""
    x, y = points.unbind(-1)
    cross = x * y.roll(-1, dims=1) - y * x.roll(-1, dims=1)
    return 0.5 * cross.sum(dim=1).abs()


class PolygonNet(nn.Module):
    def __init__(self, features=10, corners=4):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, 24), nn.ReLU())
        self.offsets = nn.Linear(24, corners * 2)
        square = torch.tensor([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
        self.register_buffer("anchor", square)

    def forward(self, x):
        return self.anchor + 0.1 * self.offsets(self.trunk(x)).view(len(x), -1, 2)


torch.manual_seed(29)
features = torch.rand(6, 8, 10)
outlines = torch.tensor([[0.0, 0.0], [3.0, 0.0], [5.0, 4.0], [1.0, 6.0]]).repeat(6, 8, 1, 1)
outlines[3, 5] = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])

model = PolygonNet().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for x, outline in zip(features.to(DEVICE), outlines.to(DEVICE)):
    polygon = model(x)
    ratio = shoelace(polygon) / shoelace(outline)  # BUG
    corner_loss = (polygon - outline).abs().mean()
    loss = corner_loss + ratio.log().abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"polygons: last loss {loss.item():.4f}")
