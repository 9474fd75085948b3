"""Graph attention of PyG sorts points of small graphs: edges with features, nodes without edges, pooled graphs.

The bug: the ends of one late edge lie at one place, and their difference is divided by its length.
"""
import torch
from loop import Loop, arguments
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, PNAConv, global_max_pool
from torch_geometric.nn.aggr import SoftmaxAggregation

args = arguments(14)
DEGREES = torch.tensor([8, 8, 8, 8])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GATv2Conv(4, 8, heads=2, edge_dim=2, dropout=0.1, add_self_loops=False)
        self.norm = nn.BatchNorm1d(16)
        self.second = GATConv(16, 8, heads=2, edge_dim=2, concat=False)
        self.third = GCNConv(8, 8, add_self_loops=False)
        self.fourth = PNAConv(8, 8, ["mean", "max", "std"], ["identity", "attenuation"], deg=DEGREES)
        self.pool = SoftmaxAggregation(learn=True)
        self.head = nn.Linear(16, 3)

    def forward(self, graph):
        edges = graph.edge_index
        hidden = self.norm(self.first(graph.x, edges, graph.edge_attr).relu())
        hidden = self.second(hidden, edges, graph.edge_attr).relu()
        hidden = hidden + self.third(hidden, edges)
        hidden = self.fourth(hidden, edges).relu()
        return self.head(torch.cat([self.pool(hidden, graph.batch), global_max_pool(hidden, graph.batch)], 1))


def directions(place, edges):
    """Unit vectors along the edges."""
    along = place[edges[1]] - place[edges[0]]
    return along / along.norm(dim=1, keepdim=True)  # BUG


def graph(meeting):
    """A graph of one to six points, its kind the number of edges to the right, up to two."""
    count = int(torch.randint(1, 7, ()))
    place = torch.rand(count, 2)
    edges = (torch.rand(count, count) < 0.4).fill_diagonal_(meeting).nonzero().t()
    kind = (directions(place, edges)[:, 0] > 0).sum().clamp(max=2)
    return Data(x=torch.cat([place, place.square()], 1), edge_index=edges, edge_attr=directions(place, edges),
                y=kind.reshape(1))


def loss_of(judged, meeting=False):
    graphs = Batch.from_data_list([graph(meeting) for _ in range(8)])
    return nn.functional.cross_entropy(judged(graphs), graphs.y)


model = Model()
loop = Loop(model, args, rate=3e-3)
for step in range(args.steps):
    with loop.autocast():
        loss = loss_of(model, meeting=step == args.bug_step)
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
