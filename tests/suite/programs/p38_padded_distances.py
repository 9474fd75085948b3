"""A point matcher weights distances padded with infinity by a gate, then drops the pads."""
# label: phase=forward mechanism=INDET category=N3 category_alt=N2 birth_op=aten::mul kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=where needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
POINTS = 8


class Matcher(nn.Module):
    def __init__(self, features=6):
        super().__init__()
        self.encode = nn.Linear(features, 16, bias=False)
        self.gate = nn.Linear(16, 1, bias=False)

    def forward(self, features):
        return self.gate(torch.tanh(self.encode(features))).squeeze(-1)


def nearest_distance(points, valid):
    """The distance of every point to the origin, infinite where the slot is empty."""
    distance = points.square().sum(dim=-1).sqrt()
    return distance.masked_fill(~valid, float("inf"))  # INTENDED


def collate(counts):
    """Clouds of different sizes, padded with zeros to POINTS."""
    valid = torch.arange(POINTS)[None, :] < torch.tensor(counts)[:, None]
    points = (1.0 + torch.rand(len(counts), POINTS, 3)) * valid[:, :, None]
    features = torch.randn(len(counts), POINTS, 6) * valid[:, :, None]
    return points, features, valid


torch.manual_seed(38)
model = Matcher().to(DEVICE)
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for counts in ([8, 8], [8, 8], [8, 8], [8, 5], [8, 8]):
    points, features, valid = (t.to(DEVICE) for t in collate(counts))
    gate = model(features)
    weighted = gate * nearest_distance(points, valid)  # BUG
    kept = weighted.masked_select(valid)
    loss = (kept - 1.0).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"matcher: last loss {loss.item():.4f}")
