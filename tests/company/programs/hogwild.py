"""Hogwild: processes that train one model in shared memory, with gradients and optimizers of their own. They take
turns, so that the result is the same every time. The last one goes bad when the others have ended.

usage: hogwild.py METHOD    how they are started
"""
import sys

import torch
import torch.multiprocessing as mp
from torch import nn

import small_training

COUNT, STEPS = 2, 4


def train(rank, model, turns, losses):
    training = small_training.Training(rank, model)
    for _ in range(STEPS):
        turns[rank].acquire()
        losses[rank] += training.step()
        turns[(rank + 1) % COUNT].release()
    if rank == COUNT - 1:
        turns[rank].acquire()
        print("then", training.go_bad(), flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    context = mp.get_context(sys.argv[1])
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).share_memory()
    turns, losses = [context.Semaphore(0) for _ in range(COUNT)], torch.zeros(COUNT).share_memory_()
    processes = [context.Process(target=train, args=(rank, model, turns, losses)) for rank in range(COUNT)]
    for process in processes:
        process.start()
    turns[0].release()
    processes[0].join()
    small_training.state.show(model, losses)
    sys.stdout.flush()
    turns[COUNT - 1].release()
    processes[-1].join()
    print("ended", [process.exitcode for process in processes])
