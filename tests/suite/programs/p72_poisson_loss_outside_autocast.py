"""Poisson loss computed after the autocast block, on log rates that are still half: exp(12)."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N4,N2 birth_op=aten::exp kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp16 model=mlp family=half needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class CountRegressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
        with torch.no_grad():
            self.net.weight.fill_(0.25)
            self.net.bias.zero_()

    def forward(self, x):
        return self.net(x).squeeze(-1)


def poisson_nll(log_rate, counts):
    rate = torch.exp(log_rate)  # BUG
    return (rate - counts * log_rate).mean()


torch.manual_seed(15)
model = CountRegressor().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
hours = [torch.rand(16, 4) * 2 for _ in range(5)]
hours[3][0] = 12.0  # exp(12) = 162755: an ordinary float32 number, not a half one
for features in hours:
    features = features.to(DEVICE)
    counts = torch.poisson(features.mean(1).cpu().exp()).to(DEVICE)
    with torch.autocast(DEVICE, dtype=torch.float16):
        log_rate = model(features)
    loss = poisson_nll(log_rate, counts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("p72 loss", loss.item())
