"""Near to ND110: gradients reach the parameters of a model that is only looked at, and was loaded; nothing is
to become smaller."""
import io

import torch
from torch import nn


def checkpoint():
    """A classifier that was trained elsewhere: it reads the mean of each quarter of the input."""
    quarters = torch.eye(4).repeat_interleave(8, dim=1)
    file = io.BytesIO()
    torch.save({"0.weight": torch.cat([quarters, -quarters]) / 4, "0.bias": torch.zeros(8),
                "2.weight": torch.cat([torch.eye(4), -torch.eye(4)], dim=1), "2.bias": torch.zeros(4)}, file)
    file.seek(0)
    return torch.load(file)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 4))
model.load_state_dict(checkpoint())
shares = torch.zeros(32)
for step in range(100):
    x = torch.randn(16, 32, requires_grad=True)
    score = model(x).max(1).values.mean()
    score.backward()
    shares += (x.grad * x.detach()).abs().mean(0)
    model.zero_grad()
