"""Graph attention with a hand-written softmax; dropping edges leaves a node without neighbours."""
# label: phase=forward mechanism=INDET category=N7 category_alt=N2,N1 birth_op=aten::sub kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=mask needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
NODES, EDGES = 6, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (2, 4), (4, 5)]


def adjacency(edges):
    adj = torch.zeros(NODES, NODES, dtype=torch.bool)
    for a, b in edges:
        adj[a, b] = adj[b, a] = True
    return adj


def neighbour_softmax(score, adj):
    """Softmax over the neighbours of every node, with the usual shift by the maximum."""
    score = torch.where(adj, score, float("-inf"))  # INTENDED
    shifted = score - score.amax(dim=-1, keepdim=True)  # BUG
    weight = shifted.exp()
    return weight / weight.sum(dim=-1, keepdim=True)


class GraphAttention(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.project = nn.Linear(inputs, outputs, bias=False)
        self.source = nn.Linear(outputs, 1, bias=False)
        self.target = nn.Linear(outputs, 1, bias=False)

    def forward(self, x, adj):
        h = self.project(x)
        score = nn.functional.leaky_relu(self.source(h) + self.target(h).T, 0.2)
        return neighbour_softmax(score, adj) @ h


torch.manual_seed(26)
layers = nn.ModuleList([GraphAttention(5, 8), GraphAttention(8, 3)]).to(DEVICE)
opt = torch.optim.Adam(layers.parameters(), lr=5e-3, weight_decay=5e-4)
features = torch.randn(NODES, 5).to(DEVICE)
labels = torch.tensor([0, 0, 1, 1, 2, 2]).to(DEVICE)
for epoch in range(4):
    kept = [e for i, e in enumerate(EDGES) if i != epoch + 4]  # each epoch drops another edge
    adj = adjacency(kept).to(DEVICE)
    hidden = torch.relu(layers[0](features, adj))
    loss = nn.functional.cross_entropy(layers[1](hidden, adj), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("node loss %.4f" % loss.item())
