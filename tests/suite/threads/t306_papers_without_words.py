"""Node features of a citation graph are divided by their row sums; some papers have no word of the dictionary."""
# label: phase=data mechanism=DIV0 category=N1 category_alt=N2
# label: birth_op=aten::div,aten::mul,aten::reciprocal,aten::pow kind=+inf,nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=citation_features needs= fragile=no
# label: thread=danielegrattarola/keras-gat#14 uses= fix_kind=data
# fix: when the features are loaded, what is not a number after the division is set to zero
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def load_graph(papers=120, words=60):
    """Papers of three fields that cite mostly their own; papers 40 and 41 came without an abstract."""
    field = torch.arange(papers) % 3
    mentions = torch.rand(papers, words) < 0.05
    mentions |= (torch.rand(papers, words) < 0.2) & (torch.arange(words) % 3 == field[:, None])
    features = mentions.float()
    features[40:42] = 0.0
    features = features / features.sum(dim=1, keepdim=True)  # BUG
    if FIXED:
        features = torch.nan_to_num(features)
    cites = (torch.rand(papers, papers) < 0.02) | ((field[:, None] == field) & (torch.rand(papers, papers) < 0.06))
    cites |= torch.eye(papers, dtype=torch.bool)
    return features, cites, field


class Attention(nn.Module):
    def __init__(self, inp, out):
        super().__init__()
        self.map, self.left, self.right = nn.Linear(inp, out), nn.Linear(out, 1), nn.Linear(out, 1)

    def forward(self, x, cites):
        h = self.map(x)  # BUG-ALT
        score = nn.functional.leaky_relu(self.left(h) + self.right(h).T, 0.2)
        return score.masked_fill(~cites, -1e9).softmax(dim=1) @ h


torch.manual_seed(14)
features, cites, field = load_graph()
first, second = Attention(60, 16), Attention(16, 3)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=5e-3)
seen = torch.arange(120) < 30
for step in range(5):
    logits = second(nn.functional.elu(first(features, cites)), cites)
    loss = nn.functional.cross_entropy(logits[seen], field[seen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
