"""Neighbour sums are scaled by the mean degree over a node's own; one atom is bound to none."""
# label: phase=forward mechanism=DIV0 category=N7 category_alt=N2,N1 birth_op=aten::div,aten::reciprocal kind=+inf first_step=106
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=inverse_degree_scaler needs= fragile=no
# label: thread=pyg-team/pytorch_geometric#6609 uses=torch_geometric fix_kind=clamp
# fix: degrees are kept at one or more where they are divided by
import os

import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing, global_add_pool
from torch_geometric.nn.aggr import Aggregation, MultiAggregation
from torch_geometric.utils import degree

FIXED = os.environ.get("FIXED") == "1"


class ScaledAggregation(Aggregation):
    """Several aggregations, each as it is, damped by the degree, and raised against it."""

    def __init__(self, kinds, mean_degree):
        super().__init__()
        self.aggregate, self.mean_degree = MultiAggregation(kinds), mean_degree

    def forward(self, x, index=None, ptr=None, dim_size=None, dim=-2):
        out = self.aggregate(x, index, ptr, dim_size, dim)
        degrees = degree(index, dim_size, dtype=out.dtype)[:, None]
        if FIXED:
            degrees = degrees.clamp(min=1)
        return torch.cat([out, out * (degrees / self.mean_degree), out * (self.mean_degree / degrees)], dim=-1)  # BUG


class Layer(MessagePassing):
    def __init__(self, width):
        super().__init__(aggr=ScaledAggregation(["mean", "max", "min"], mean_degree=1.9))
        self.before, self.after = nn.Linear(2 * width, width), nn.Linear(10 * width, width)

    def forward(self, x, edge_index):
        return self.after(torch.cat([x, self.propagate(edge_index, x=x)], dim=-1))

    def message(self, x_i, x_j):
        return torch.relu(self.before(torch.cat([x_i, x_j], dim=-1)))


class Regressor(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.atoms, self.layer, self.out = nn.Embedding(5, width), Layer(width), nn.Linear(width, 1)

    def forward(self, batch):
        h = torch.relu(self.layer(self.atoms(batch.kind), batch.edge_index))
        return self.out(global_add_pool(h, batch.batch)).squeeze(-1)


def molecule(salt=False):
    """A ring with a tail; a salt has an ion besides."""
    size = int(torch.randint(5, 9, ()))
    bonds = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size])[:, :size - int(torch.rand(()) < 0.5)]
    kind = torch.randint(0, 5, (size + salt,))
    return Data(kind=kind, edge_index=torch.cat([bonds, bonds.flip(0)], dim=1), y=(kind == 0).float().sum(),
                num_nodes=size + salt)


torch.manual_seed(6609)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(110):
    batch = Batch.from_data_list([molecule(salt=step == 106 and i == 2) for i in range(8)])
    loss = nn.functional.mse_loss(model(batch), batch.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
