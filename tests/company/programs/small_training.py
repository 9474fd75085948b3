"""A small training for the programs of this folder: what it computes is printed as hashes, and it can be made to go
bad."""
import hashlib
import pathlib
import random
import sys

import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "twin" / "programs"))
import state  # noqa: E402


class Training:
    def __init__(self, seed=0, model=None):
        torch.manual_seed(seed)
        self.model = model or nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Tanh(), nn.Dropout(0.1),
                                            nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.generator = torch.Generator().manual_seed(seed)

    def rate(self, x):
        return self.model(x).squeeze(-1).abs() + 0.1

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def step(self):
        x = torch.rand((12, 8), generator=self.generator)
        return self.update((self.rate(x) - x.sum(1)).square().mean())

    def steps(self, count=12):
        for _ in range(count):
            self.step()
        return self

    def go_bad(self):
        x = torch.rand((12, 8), generator=self.generator)
        return self.update((-self.rate(x)).log().mean())  # BUG


def show(training):
    """Prints the parameters, the buffers, the gradients, and the random numbers that come next."""
    state.show(training.model)


def show_and_go_bad(training):
    """The end of a program: what it had computed, and a NaN that is found in any company."""
    show(training)
    sys.stdout.flush()
    print("then", training.go_bad())
    print("drawn", random.random(), torch.rand(1).item())
