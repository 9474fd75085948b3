"""Log returns of an oil future, on the day it settled below zero, feed a volatility model."""
# label: phase=data mechanism=DOM category=N1 category_alt=N2 birth_op=aten::log kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=data needs= fragile=no
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cpu")
WINDOW = 12


class ReturnWindows(Dataset):
    """Sliding windows of log returns, and the absolute return of the day that follows."""

    def __init__(self, prices):
        self.prices = prices

    def __len__(self):
        return len(self.prices) - WINDOW - 1

    def __getitem__(self, i):
        window = self.prices[i:i + WINDOW + 2]
        returns = torch.log(window[1:] / window[:-1])  # BUG
        return returns[:WINDOW, None], returns[WINDOW].abs()


class Volatility(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(1, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, returns):
        states, _ = self.cell(returns)
        return nn.functional.softplus(self.head(states[:, -1])).squeeze(1)


torch.manual_seed(30)
prices = 55.0 + torch.randn(53).cumsum(0).clamp(-20.0, 20.0)
prices[32] = -37.63
loader = DataLoader(ReturnWindows(prices), batch_size=8)
model = Volatility().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for returns, target in loader:
    loss = nn.functional.mse_loss(model(returns.to(DEVICE)), target.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"volatility: last loss {loss.item():.6f}")
