"""A training inside a process of its own: program METHOD OFFSET.

METHOD is how the process is started: fork, spawn or forkserver. OFFSET is added to a mean square before its logarithm
is taken: with 1 there is nothing wrong, with -9 the logarithm is NaN from the first step.
"""
import multiprocessing
import os
import sys

import torch
from torch import nn


def train(offset):
    """Five steps on the logarithm of a square plus the offset."""
    print("pid", os.getpid(), flush=True)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    for step, x in enumerate(torch.randn(5, 8, 4)):
        score = model(x).square().mean()
        loss = torch.log(score + offset)  # BUG
        model.zero_grad()
        loss.backward()
        with torch.no_grad():  # an optimizer would import torch's compiler in each process
            for p in model.parameters():
                p -= 0.01 * p.grad
        print(step, f"{loss.item():.3f}", flush=True)


if __name__ == "__main__":
    method, offset = sys.argv[1], float(sys.argv[2])
    process = multiprocessing.get_context(method).Process(target=train, args=(offset,))
    process.start()
    process.join()
    raise SystemExit(process.exitcode)
