"""Workers of a DataLoader that are forked after the device was used."""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ["DEVICE"]


class Numbers(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, at):
        return torch.full((8,), float(at)) / 32 + torch.nn.functional.relu(torch.arange(8.0) - at)


torch.manual_seed(0)
model = nn.Linear(8, 1).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
total = model(torch.ones(1, 8).to(DEVICE)).item()
for _ in range(2):
    for batch in DataLoader(Numbers(), batch_size=8, num_workers=2, multiprocessing_context="fork"):
        loss = model(batch.to(DEVICE)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
print("total", round(total, 4))
