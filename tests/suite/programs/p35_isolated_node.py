"""A graph network with learned edge weights guards 1/degree by where(), but not its slope."""
# label: phase=forward mechanism=DIV0 category=N3 category_alt=N2 birth_op=aten::reciprocal kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=where needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class WeightedGraphConv(nn.Module):
    """Mean of the neighbours, each edge weighted by a gate of its relation type."""

    def __init__(self, width, relations):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(relations))
        self.linear = nn.Linear(width, width)

    def forward(self, nodes, adjacency):
        weights = torch.einsum("r,rij->ij", torch.sigmoid(self.gate), adjacency)
        degree = weights.sum(dim=1)
        inverse = torch.where(degree > 0, 1.0 / degree, torch.zeros_like(degree))  # BUG
        return torch.relu(self.linear(inverse[:, None] * (weights @ nodes)) + nodes)


class GraphNet(nn.Module):
    def __init__(self, width=8, relations=2):
        super().__init__()
        self.layers = nn.ModuleList(WeightedGraphConv(width, relations) for _ in range(2))
        self.readout = nn.Linear(width, 1)

    def forward(self, nodes, adjacency):
        for layer in self.layers:
            nodes = layer(nodes, adjacency)
        return self.readout(nodes).mean()


def random_graph(isolated):
    adjacency = (torch.rand(2, 7, 7) < 0.4).float()
    adjacency[0] += torch.eye(7)
    if isolated:
        adjacency[:, 3, :] = 0.0
    return adjacency


torch.manual_seed(35)
graphs = [(torch.randn(7, 8), random_graph(isolated=step == 2)) for step in range(5)]
model = GraphNet().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for nodes, adjacency in graphs:
    loss = (model(nodes.to(DEVICE), adjacency.to(DEVICE)) - 1.0).square()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"graphs: last loss {loss.item():.4f}")
