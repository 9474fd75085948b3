"""Graphs of different sizes are padded; the bias of their distances is -inf in all of a missing node's row."""
# label: phase=forward mechanism=INDET category=N7 category_alt=N2,N1 birth_op=aten::_softmax,aten::softmax kind=nan
# label: first_step=15
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=spatial_bias_padding needs= fragile=no
# label: thread=dmlc/dgl#5476 uses= fix_kind=mask
# fix: rows of nodes that do not exist are padded by zero; only the columns stay at -inf
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class SpatialEncoder(nn.Module):
    """A bias of attention for each distance between two nodes."""

    def __init__(self, farthest=5):
        super().__init__()
        self.farthest, self.bias = farthest, nn.Embedding(farthest + 1, 1)

    def forward(self, distances, size):
        padded = []
        for distance in distances:
            nodes = len(distance)
            square = torch.full((size, size), -torch.inf)
            if FIXED:
                square[nodes:] = 0.0
            square[:nodes, :nodes] = self.bias(distance.clamp(max=self.farthest)).squeeze(-1)
            padded.append(square)  # BUG-ALT
        return torch.stack(padded)


class Graphormer(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.inp, self.space = nn.Linear(3, width), SpatialEncoder()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 1)

    def forward(self, nodes, distances):
        x, bias = self.inp(nodes), self.space(distances, nodes.shape[1])
        for _ in range(2):
            scores = self.query(x) @ self.key(x).transpose(1, 2) / 4.0 + bias
            x = x + scores.softmax(dim=-1) @ self.value(x)  # BUG
        return self.out(x[:, 0]).squeeze(-1)


def batch(sizes):
    """Rings of atoms; the distance is the number of bonds between two."""
    nodes, distances = torch.zeros(len(sizes), max(sizes), 3), []
    for index, size in enumerate(sizes):
        nodes[index, :size] = torch.randn(size, 3)
        place = torch.arange(size)
        apart = (place[:, None] - place).abs()
        distances.append(torch.minimum(apart, size - apart))
    return nodes, distances


torch.manual_seed(5476)
model = Graphormer()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(18):
    nodes, distances = batch([6, 6, 5, 6] if step >= 15 else [6, 6, 6, 6])
    loss = (model(nodes, distances) - nodes[..., 0].sum(dim=1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
