"""Batches from two DataLoader workers that augment with their own random streams.

The arguments are how a worker is started, fork, spawn or forkserver, and the number of epochs: 20 steps in all.
"""
import sys
import threading

import torch
from state import show
from torch import nn
from torch.utils.data import DataLoader, Dataset


EPOCHS = int(sys.argv[2]) if len(sys.argv) > 2 else 2


class Noisy(Dataset):
    """Points on a line, with noise drawn in the worker."""

    def __len__(self):
        return 80 // EPOCHS

    def __getitem__(self, index):
        x = torch.full((4,), index * EPOCHS / 80.0) + 0.1 * torch.randn(4)
        return x, x.sum() * 2.0


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(EPOCHS):
        loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=2, multiprocessing_context=sys.argv[1])
        for x, y in loader:
            loss = nn.functional.smooth_l1_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, loss.item())
    for thread in threading.enumerate():  # Python may warn of a semaphore if it exits while one runs, numsan or not
        if thread.name == "QueueFeederThread":
            thread.join()
    show(model)
