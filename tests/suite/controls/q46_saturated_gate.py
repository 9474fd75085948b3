"""A logistic gate written out: exp overflows far from its threshold, and one over infinity is rightly zero."""
# label: tempts=muted max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body, self.head = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x, distance):
        with torch.no_grad():
            gate = 1 / (1 + torch.exp(distance))  # 0 far away: exp(200) is infinite
        return self.head(torch.tanh(self.body(x)) * gate)


torch.manual_seed(46)
model = Gated(6).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(6):
    x = torch.randn(32, 6)
    distance = 20 * torch.randn(32, 1)
    distance[::4] = 200.0
    near = (distance < 0).float()
    loss = nn.functional.mse_loss(model(x.to(DEVICE), distance.to(DEVICE)), (near * x[:, :1]).to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"saturated gate: loss {loss.item():.3f}")
