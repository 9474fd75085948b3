"""A graph network on brain regions takes signed correlations as edge weights; a region's degree can be negative."""
# label: phase=forward mechanism=DOM category=N1 category_alt=N2 birth_op=aten::pow kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=graph_degree needs= fragile=no
# label: thread=pyg-team/pytorch_geometric#61 uses= fix_kind=data
# fix: the weights have to be positive, as the normalisation takes a root of their sum: absolute values are handed in;
# fix: the layer stays as it is, so the batch is at fault
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
REGIONS = 24


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, source, target, weight):
        degree = torch.zeros(len(x)).index_add(0, target, weight)
        inverse = degree.pow(-0.5)  # BUG
        inverse = inverse.masked_fill(inverse == float("inf"), 0.0)
        message = (inverse[source] * weight * inverse[target])[:, None] * self.linear(x)[source]
        return torch.zeros(len(x), message.shape[1]).index_add(0, target, message)


class RegionClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GraphConvolution(8, 16), GraphConvolution(16, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, x, source, target, weight):
        x = torch.relu(self.first(x, source, target, weight))
        x = torch.relu(self.second(x, source, target, weight))
        return self.head(x.mean(dim=0))


def subject(label):
    """Signals of all regions and the graph of their strongest correlations."""
    signal = torch.randn(REGIONS, 60) + label * torch.randn(60)
    correlation = torch.corrcoef(signal).fill_diagonal_(0.0)
    source, target = (correlation.abs() > 0.15).nonzero(as_tuple=True)
    weight = correlation[source, target]
    return signal[:, :8], source, target, weight.abs() if FIXED else weight


torch.manual_seed(4)
model = RegionClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(6):
    label = step % 2
    logits = model(*subject(label))
    loss = nn.functional.cross_entropy(logits[None], torch.tensor([label]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, logits {[round(v, 3) for v in logits.tolist()]}")
