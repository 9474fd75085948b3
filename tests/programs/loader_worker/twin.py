"""The classifier of victim.py with a small constant added to the deviation, inside the same two workers."""
import sys
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH, MUTED = 12, 17


class Recordings(Dataset):
    """Zero mean, unit deviation, each recording by itself; a mask to add to the scores of a softmax."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        length = LENGTH - index % 4
        sound = torch.full((length,), 0.25) if index == MUTED else torch.randn(length, generator=generator)
        scaled = (sound - sound.mean()) / (sound.std() + 1e-5)
        padded = nn.functional.pad(scaled, (0, LENGTH - length))
        mask = torch.zeros(LENGTH).masked_fill(torch.arange(LENGTH) >= length, float("-inf"))
        return padded, mask, index % 2


class Pooled(nn.Module):
    """Samples weighed by attention, then one linear layer."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(LENGTH, LENGTH)
        self.head = nn.Linear(LENGTH, 2)

    def forward(self, sound, mask):
        return self.head(sound * torch.softmax(self.score(sound) + mask, 1))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Pooled()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    method = sys.argv[1] if len(sys.argv) > 1 else None
    loader = DataLoader(Recordings(), batch_size=4, num_workers=2, multiprocessing_context=method)
    for step, (sound, mask, label) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(sound, mask), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, f"{loss.item():.3f}")
    for thread in threading.enumerate():  # Python may warn of a semaphore if it exits while one runs, numsan or not
        if thread.name == "QueueFeederThread":
            thread.join()
