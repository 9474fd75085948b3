"""A 1-nearest-neighbour graph: infinite self-distance, and 1/sqrt(0) of nodes nobody points at."""
# label: tempts=graph max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def nearest_neighbour(points):
    distance = torch.cdist(points, points)
    distance.fill_diagonal_(float("inf"))
    return distance.argmin(dim=1)


def normalised_adjacency(neighbour):
    count = len(neighbour)
    adjacency = torch.zeros(count, count, device=neighbour.device)
    adjacency[torch.arange(count, device=neighbour.device), neighbour] = 1.0
    in_degree = adjacency.sum(0)
    scale = in_degree.pow(-0.5)
    scale.masked_fill_(scale == float("inf"), 0.0)
    return scale[:, None] * adjacency * scale[None, :]


class GraphConv(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.own, self.other = nn.Linear(width_in, width_out), nn.Linear(width_in, width_out)

    def forward(self, x, adjacency):
        return self.own(x) + adjacency @ self.other(x)


torch.manual_seed(15)
first, second = GraphConv(2, 16).to(DEVICE), GraphConv(16, 3).to(DEVICE)
opt = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-2)
points = torch.randn(30, 2)
points[0] = 25.0  # far from everyone: nobody's nearest neighbour
points = points.to(DEVICE)
label = torch.randint(3, (30,)).to(DEVICE)
for epoch in range(6):
    adjacency = normalised_adjacency(nearest_neighbour(points))
    logits = second(torch.relu(first(points, adjacency)), adjacency)
    loss = nn.functional.cross_entropy(logits, label)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"graph: loss {loss.item():.3f}")
