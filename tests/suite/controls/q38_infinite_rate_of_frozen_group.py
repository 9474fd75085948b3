"""Rates by layer size: a frozen, empty adapter gets an infinite rate that no update ever uses."""
# label: tempts=schedule max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(6, 16)
        self.adapter = nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)
        nn.init.zeros_(self.adapter.weight)
        nn.init.zeros_(self.adapter.bias)
        self.adapter.requires_grad_(False)

    def forward(self, x):
        hidden = torch.relu(self.stem(x))
        return self.head(hidden + self.adapter(hidden))


def rates_by_size(parts, base=1e-2):
    """The larger a layer's root mean square, the smaller its rate."""
    size = torch.stack([part.weight.detach().square().mean().sqrt() for part in parts])
    return base * size.max() / size


torch.manual_seed(38)
model = Tuned().to(DEVICE)
parts = [model.stem, model.adapter, model.head]
rates = rates_by_size(parts).unbind()
groups = [{"params": part.parameters(), "lr": rate} for part, rate in zip(parts, rates)]
opt = torch.optim.SGD(groups, momentum=0.9)
for step in range(6):
    x = torch.randn(32, 6)
    y = x[:, :3].argmax(1)
    loss = nn.functional.cross_entropy(model(x.to(DEVICE)), y.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"frozen group: loss {loss.item():.3f}")
