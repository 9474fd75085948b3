"""Unwritten scratch, filled with NaN by the deterministic mode, is asked only for its shape."""
# label: tempts=uninitialised max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
DEVICE = os.environ.get("DEVICE", "cpu")


class LocallyConnected(nn.Module):
    """Positions get weights of their own; their grid is found with a dry, unwritten input."""

    def __init__(self, length, kernel, width):
        super().__init__()
        self.kernel = kernel
        template = torch.empty(1, length).unfold(1, kernel, 1)
        positions = template.shape[1]
        self.weight = nn.Parameter(torch.randn(positions, kernel, width) / kernel ** 0.5)
        self.bias = nn.Parameter(torch.zeros_like(torch.empty(positions, width)))

    def forward(self, x):
        windows = x.unfold(1, self.kernel, 1)
        like = torch.empty(len(x), *self.bias.shape, device=x.device)
        bias = self.bias.expand_as(like)
        return bias + torch.einsum("blk,lkw->blw", windows, self.weight)


torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True
torch.manual_seed(40)
layer = LocallyConnected(length=12, kernel=3, width=4).to(DEVICE)
head = nn.Linear(40, 2).to(DEVICE)
opt = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
for step in range(5):
    x = torch.randn(16, 12)
    label = (x[:, 3] > x[:, 8]).long().to(DEVICE)
    logits = head(torch.relu(layer(x.to(DEVICE))).flatten(1))
    loss = nn.functional.cross_entropy(logits, label)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"unwritten template: loss {loss.item():.3f}")
