"""Layer normalisation graph by graph adds its eps after the root; a graph of one plain atom has no variance."""
# label: phase=backward mechanism=SING category=N3 category_alt=N7 birth_op=aten::div,aten::mul kind=+inf,nan
# label: first_step=25
# label: severity=error loss_stays_finite=yes dtype=fp32 model=gnn family=norm_eps_outside needs= fragile=no
# label: thread=pyg-team/pytorch_geometric#2917 uses= fix_kind=eps
# fix: eps goes inside the root, so that its derivative at zero variance is finite
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class GraphLayerNorm(nn.Module):
    """Normalises all entries of each graph of a batch by their mean and deviation."""

    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))

    def forward(self, x, graph, graphs):
        entries = torch.zeros(graphs).index_add(0, graph, torch.full((len(x),), float(x.shape[1])))
        mean = torch.zeros(graphs).index_add(0, graph, x.sum(dim=-1)) / entries
        x = x - mean[graph][:, None]
        variance = torch.zeros(graphs).index_add(0, graph, x.square().sum(dim=-1)) / entries
        if FIXED:
            x = x / (variance + self.eps).sqrt()[graph][:, None]
        else:
            x = x / (variance.sqrt() + self.eps)[graph][:, None]  # BUG
        return x * self.weight + self.bias


class MoleculeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 12, bias=False)
        self.norm, self.head = GraphLayerNorm(12), nn.Linear(12, 1)

    def forward(self, atoms, source, target, graph, graphs):
        x = self.embed(atoms)
        x = x.index_add(0, target, x[source])
        x = torch.relu(self.norm(x, graph, graphs))
        pooled = torch.zeros(graphs, x.shape[1]).index_add(0, graph, x)
        return self.head(pooled).squeeze(-1)


def molecules(step, graphs=8, atoms=5):
    x = torch.nn.functional.one_hot(torch.randint(0, 4, (graphs * atoms,)), 4).float()
    graph = torch.arange(graphs).repeat_interleave(atoms)
    source = torch.arange(graphs * atoms)
    target = source - source % atoms + (source + 1) % atoms
    if step == 25:
        x[:atoms] = 0.0  # five atoms of an element that is not in the table
    return x, source, target, graph, graphs


torch.manual_seed(29)
net = MoleculeNet()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(26):
    batch = molecules(step)
    energy = batch[0].view(8, 5, 4)[..., 0].sum(dim=1)
    loss = nn.functional.mse_loss(net(*batch), energy)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"energy error {loss.item():.4f}, embedding {net.embed.weight.norm().item():.3f}")
