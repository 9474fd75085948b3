"""Multi-task regression: an assay that was not run is NaN, and the loss indexes the rest."""
# label: tempts=missing max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def loss_of_measured(predicted, measured):
    known = ~torch.isnan(measured)
    return (predicted[known] - measured[known]).square().mean()


class Assays(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(7)
        self.fingerprint = torch.bernoulli(torch.full((48, 40), 0.3), generator=generator)
        self.value = torch.randn(48, 5, generator=generator)
        self.value[torch.rand(48, 5, generator=generator) < 0.5] = float("nan")

    def __len__(self):
        return len(self.value)

    def __getitem__(self, index):
        return self.fingerprint[index], self.value[index]


torch.manual_seed(7)
model = nn.Sequential(nn.Linear(40, 32), nn.SiLU(), nn.Linear(32, 5)).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for fingerprint, value in torch.utils.data.DataLoader(Assays(), batch_size=8, shuffle=True):
    fingerprint, value = fingerprint.to(DEVICE), value.to(DEVICE)
    loss = loss_of_measured(model(fingerprint), value)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"assays: loss {loss.item():.3f}")
