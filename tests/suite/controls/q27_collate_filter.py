"""Log returns of price windows: a halted stock gives a NaN, and collate drops its sample."""
# label: tempts=data max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

DEVICE = os.environ.get("DEVICE", "cpu")


class Windows(Dataset):
    def __init__(self, count=40, days=16):
        generator = torch.Generator().manual_seed(27)
        step = 0.02 * torch.randn(count, days, generator=generator)
        self.price = 50.0 * step.cumsum(1).exp()
        self.price[7] = 0.0
        self.price[23, 8:] = 0.0

    def __len__(self):
        return len(self.price)

    def __getitem__(self, index):
        price = self.price[index]
        change = torch.log(price[1:] / price[:-1])
        return change[:-1], change[-1]


def drop_broken(samples):
    good = [sample for sample in samples if all(torch.isfinite(part).all() for part in sample)]
    return default_collate(good)


torch.manual_seed(27)
model = nn.Sequential(nn.Linear(14, 16), nn.Tanh(), nn.Linear(16, 1)).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Windows(), batch_size=8, shuffle=True, collate_fn=drop_broken)
seen = 0
for epoch in range(2):
    for past, future in loader:
        past, future = past.to(DEVICE), future.to(DEVICE)
        loss = (100 * (model(100 * past)[:, 0] - future)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += len(past)
print(f"collate filter: {seen // 2} of 40 windows used, loss {loss.item():.3f}")
