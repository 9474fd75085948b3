"""Near to ND117: four of six weights start at zero, each in a branch that is added to its input."""
import torch
import torch.nn.functional as F
from torch import nn


class Branch(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layer = nn.Linear(width, width)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x):
        return x + self.layer(F.gelu(self.norm(x)))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 48), *[Branch(48) for _ in range(4)], nn.Linear(48, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for step in range(100):
    x = torch.randn(64, 8)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
