"""Insurance claim counts with a log link; one batch adds the exposure itself, not its logarithm."""
# label: phase=forward mechanism=OVF category=N4 category_alt=N2,N1 birth_op=aten::exp kind=+inf first_step=1
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=exp needs= fragile=no
import os
from dataclasses import dataclass

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@dataclass
class Portfolio:
    features: torch.Tensor
    offset: torch.Tensor
    claims: torch.Tensor


class RateNet(nn.Module):
    """Predicts the logarithm of the expected number of claims."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, features, offset):
        return self.layers(features).squeeze(-1) + offset


def load(quarter):
    features = torch.randn(24, 5)
    months = torch.randint(1, 13, (24,)).float()
    offset = (months / 12).log()
    if quarter == 1:
        offset = months * 30.5  # days of exposure straight from the new system
    return Portfolio(features, offset, torch.randint(0, 3, (24,)).float())


torch.manual_seed(9)
net = RateNet().to(DEVICE)
criterion = nn.PoissonNLLLoss(log_input=True)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

for quarter in range(4):
    book = load(quarter)
    log_rate = net(book.features.to(DEVICE), book.offset.to(DEVICE))
    loss = criterion(log_rate, book.claims.to(DEVICE))  # BUG
    opt.zero_grad()
    loss.backward()
    opt.step()

print("poisson loss %.3f" % loss.item())
