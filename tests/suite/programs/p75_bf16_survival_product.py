"""Survival model in bf16: the product of 24 shares flushes to 0 and its log is taken."""
# label: phase=forward mechanism=UDF category=N8 category_alt=N4,N2 birth_op=aten::log kind=-inf first_step=2
# label: severity=error loss_stays_finite=no dtype=bf16 model=rnn family=bf16 needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class HazardModel(nn.Module):
    def __init__(self, features=3):
        super().__init__()
        self.gru = nn.Linear(features, 8)
        self.hazard = nn.Linear(8, 1)
        with torch.no_grad():
            self.hazard.weight.zero_()
            self.hazard.bias.fill_(3.9)  # sigmoid(3.9) = 0.98: everybody churns early

    def forward(self, x):
        return torch.sigmoid(self.hazard(torch.tanh(self.gru(x)))).squeeze(-1)


def censored_nll(hazard):
    """-log S(T) for subjects still alive at the end of the window."""
    survival = torch.cumprod(1 - hazard, dim=1)[:, -1]  # PRE
    return -torch.log(survival).mean()  # BUG


torch.manual_seed(18)
model = HazardModel().to(torch.bfloat16).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1e-6)
for months in (6, 12, 24, 24):  # 0.02 ** 24 = 2e-41: a float32 subnormal, zero in bf16
    visits = torch.randn(4, months, 3).to(torch.bfloat16).to(DEVICE)
    loss = censored_nll(model(visits))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p75 loss", loss.item())
