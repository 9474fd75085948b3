"""Attention over the metapaths of a graph with several kinds of nodes; a sampled part of it holds no author at all."""
# label: phase=forward mechanism=DIV0 category=N7 category_alt=N1,N2 birth_op=aten::mean kind=nan first_step=104
# label: severity=error loss_stays_finite=yes dtype=fp32 model=gnn family=metapath_attention needs= fragile=no
# label: thread=pyg-team/pytorch_geometric#4841 uses=torch_geometric fix_kind=guard
# fix: the layer does not average over the nodes of a kind that has none in this part of the graph
import os

import torch
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.utils import scatter

FIXED = os.environ.get("FIXED") == "1"


class MetapathAttention(nn.Module):
    """Weighs what reached a kind of nodes on several paths; the weights are the same for all nodes of it."""

    def __init__(self, width):
        super().__init__()
        self.key, self.query = nn.Linear(width, width), nn.Parameter(torch.randn(width) / width**0.5)

    def forward(self, paths):
        paths = torch.stack(paths)
        if FIXED and paths.shape[1] == 0:
            return paths.sum(dim=0)
        score = (self.query * torch.tanh(self.key(paths)).mean(dim=1)).sum(dim=-1)  # BUG
        return (score.softmax(dim=0)[:, None, None] * paths).sum(dim=0)


class Network(nn.Module):
    def __init__(self, features=6, width=16):
        super().__init__()
        self.inp = nn.ModuleDict({kind: nn.Linear(features, width) for kind in ("paper", "author")})
        self.attention = nn.ModuleDict({kind: MetapathAttention(width) for kind in ("paper", "author")})
        self.out = nn.Linear(width, 3)

    def forward(self, data):
        h, answers = {kind: torch.relu(layer(data[kind].x)) for kind, layer in self.inp.items()}, []
        for kind, attention in self.attention.items():
            paths = [scatter(h[source][edges[0]], edges[1], dim=0, dim_size=len(h[kind]))
                     for (source, _, target), edges in data.edge_index_dict.items() if target == kind]
            answers.append(self.out(attention([h[kind], *paths])))
        return torch.cat(answers)


def sampled(step, papers=12):
    authors = 0 if step == 104 else int(torch.randint(3, 9, ()))
    data = HeteroData()
    for kind, count in (("paper", papers), ("author", authors)):
        data[kind].x = torch.randn(count, 6)
        data[kind].y = data[kind].x[:, :3].argmax(dim=1)
    written = torch.stack([torch.randint(0, papers, (2 * authors,)), torch.arange(authors).repeat(2)])
    data["paper", "cites", "paper"].edge_index = torch.randint(0, papers, (2, 20))
    data["paper", "of", "author"].edge_index = written
    data["author", "wrote", "paper"].edge_index = written.flip(0)
    return data


torch.manual_seed(4841)
model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(105):
    data = sampled(step)
    loss = nn.functional.cross_entropy(model(data), torch.cat([data["paper"].y, data["author"].y]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, queries {sum(a.query.norm().item() for a in model.attention.values()):.3f}")
