"""Hyperbolic embedding: far out the Lorentz product of a point with itself rounds below 1."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N8 birth_op=aten::acosh kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=embedding family=domain needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
ROOT, LEAF = 0, 9


class LorentzEmbedding(nn.Module):
    """Points on the hyperboloid, stored by their space-like coordinates."""

    def __init__(self, nodes=10, dim=4):
        super().__init__()
        self.space = nn.Embedding(nodes, dim)
        nn.init.uniform_(self.space.weight, -0.5, 0.5)
        with torch.no_grad():  # the deepest leaf sits far out, near the boundary
            self.space.weight[LEAF] = torch.tensor([3000.0, 4000.0, 0.0, 0.0])

    def lift(self, index):
        x = self.space(index)
        time = (1 + (x * x).sum(dim=-1)).sqrt()
        return time, x

    def distance(self, i, j):
        time_i, space_i = self.lift(i)
        time_j, space_j = self.lift(j)
        product = time_i * time_j - (space_i * space_j).sum(dim=-1)
        return torch.acosh(product)  # BUG


torch.manual_seed(21)
model = LorentzEmbedding().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
edges = [
    ([ROOT, 1, 2], [3, 4, 5]),
    ([ROOT, 2, 3], [6, 7, 8]),
    ([1, 4, 6], [2, 5, 7]),
    ([ROOT, 5, LEAF], [1, 8, LEAF]),  # a self-loop in the raw graph
    ([2, 3, 4], [6, 7, 8]),
]
for parents, children in edges:
    parents, children = torch.tensor(parents).to(DEVICE), torch.tensor(children).to(DEVICE)
    loss = (model.distance(parents, children) - 1.0).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

print("embedding distortion %.4f" % loss.item())
