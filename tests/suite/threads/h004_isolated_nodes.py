"""Graph convolutions take the inverse root of degrees that are zero for isolated nodes, then drop the infinities."""
# label: tempts=infinite_degree max_severity=none dtype=fp32 needs= family=isolated_nodes_masked
# label: thread=mlx-graphs/mlx-graphs#18 uses=
# why: only counts are divided by, no gradient goes through them, and the infinities are replaced before they meet a
# why: feature
import torch
from torch import nn


def normalisation(source, target, nodes):
    degree = torch.zeros(nodes).index_add(0, target, torch.ones(len(target)))
    inverse = degree.pow(-0.5)  # INTENDED
    inverse = inverse.masked_fill(inverse == float("inf"), 0.0)
    return inverse[source] * inverse[target]


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.message, self.own = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs)

    def forward(self, x, source, target):
        weight = normalisation(source, target, len(x))
        passed = weight[:, None] * self.message(x)[source]
        return self.own(x).index_add(0, target, passed)


class NodeClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Convolution(6, 16), Convolution(16, 3)

    def forward(self, x, source, target):
        return self.second(torch.relu(self.first(x, source, target)), source, target)


torch.manual_seed(18)
nodes = 40
source, target = torch.randint(0, 30, (2, 90))  # ten papers that nobody cites
x = torch.randn(nodes, 6)
label = x[:, :3].argmax(dim=1)
model = NodeClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    loss = nn.functional.cross_entropy(model(x, source, target), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
