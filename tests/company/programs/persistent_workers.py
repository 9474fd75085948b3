"""Batches from two DataLoader workers that live from epoch to epoch; in the last epoch one of them makes a NaN."""
import torch
from torch.utils.data import DataLoader, Dataset

import small_training

EPOCHS = 3


class Scaled(Dataset):
    def __init__(self):
        self.uses = torch.zeros(16)

    def __len__(self):
        return 16

    def __getitem__(self, index):
        self.uses[index] += 1  # kept by the worker, which persists
        left = EPOCHS - self.uses[index] if index in (4, 5) else torch.tensor(1.0)
        x = (torch.rand(8) + 0.5) * left
        return x / x.sum()  # BUG


training = small_training.Training()
loader = DataLoader(Scaled(), batch_size=4, num_workers=2, persistent_workers=True)
for epoch in range(EPOCHS):
    for batch, x in enumerate(loader):
        if epoch == EPOCHS - 1 and batch == 1:
            small_training.show(training)
        loss = training.update((training.rate(x) - x.sum(1)).square().mean())
        print(epoch, batch, loss)
