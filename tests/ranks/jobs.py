"""Small jobs over gloo, in which one rank makes a bad value and others receive it.

    jobs.py NAME [healthy]

RANK and WORLD_SIZE say which rank this is of how many; STORE is a folder that all know, or the word `tcp`: then ranks
find each other at MASTER_ADDR and MASTER_PORT. `healthy` is the same job without the bad value. With the name `all`
every job runs, one after another.
"""
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
HEALTHY = "healthy" in sys.argv[2:]
STEPS, BAD_STEP = 4, 2


def divisor(step, rank):
    """What a loss is divided by: zero in one step of one rank."""
    return torch.tensor(0.0 if step == BAD_STEP and rank == RANK and not HEALTHY else 1.0)


def train(model, parameters, rank):
    opt = torch.optim.SGD(parameters, lr=0.1)
    for step in range(STEPS):
        y = model(torch.randn(6, 4))
        loss = (y - y.detach()).sum() / divisor(step, rank) + y.square().mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()


def data_parallel():
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
    train(model, model.parameters(), SIZE - 1)


def counted():
    """As data_parallel, all of it finite; rank 0 says what their store has at the end."""
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        opt.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        opt.step()
    if RANK == 0:
        print(dist.distributed_c10d._get_default_store().num_keys(), "keys in the store", file=sys.stderr)


def killed():
    """As data_parallel, all of it finite; but one rank does not live to the end."""
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        if step == BAD_STEP and RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        opt.zero_grad()
        model(torch.randn(6, 4)).square().mean().backward()
        opt.step()


def sharded():
    """FSDP2: gradients are scattered, parameters gathered."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    mesh = init_device_mesh("cpu", (SIZE,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    train(model, model.parameters(), 1)


def pipeline():
    """Each stage sends its activations to the next one, and their gradients back."""
    layer = nn.Linear(4, 4)
    opt = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(STEPS):
        x = torch.randn(6, 4)
        if RANK > 0:
            dist.recv(x, RANK - 1)
            x.requires_grad_()
        y = layer(x) / divisor(step, 1)  # BUG
        if RANK < SIZE - 1:
            dist.send(y.detach(), RANK + 1)
            gradient = torch.empty_like(y)
            dist.recv(gradient, RANK + 1)
        else:
            gradient = torch.full_like(y, 1e-3)
        opt.zero_grad()
        y.backward(gradient)
        if RANK > 0:
            dist.send(x.grad, RANK - 1)
        opt.step()


def experts():
    """Tokens are exchanged by all_to_all, each rank's expert computes, and they come back."""
    expert = nn.Linear(4, 4)
    opt = torch.optim.SGD(expert.parameters(), lr=0.1)
    for step in range(STEPS):
        tokens = torch.randn(SIZE * 2, 4) / divisor(step, 2)  # BUG
        received = torch.empty_like(tokens)
        dist.all_to_all_single(received, tokens)
        loss = expert(received).square().mean() * 1e-3
        opt.zero_grad()
        loss.backward()
        opt.step()


def tensor_parallel():
    """Two rows of ranks: what is summed in one row reaches the other by the gradients of the columns."""
    mesh = init_device_mesh("cpu", (SIZE // 2, 2), mesh_dim_names=("dp", "tp"))
    rows, columns = mesh.get_group("tp"), mesh.get_group("dp")
    layer = nn.Linear(4, 3)
    opt = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(STEPS):
        part = layer(torch.randn(6, 4)) / divisor(step, SIZE - 1)  # BUG
        whole = part.detach().clone()
        dist.all_reduce(whole, group=rows)
        loss = (part * whole).mean() * 1e-3
        opt.zero_grad()
        loss.backward()
        for p in layer.parameters():
            dist.all_reduce(p.grad, group=columns)
        opt.step()


def broadcasts():
    """One rank makes the batch of all."""
    layer = nn.Linear(4, 3)
    opt = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(STEPS):
        x = torch.ones(6, 4)
        if RANK == 2:
            x = torch.randn(6, 4) / divisor(step, 2)  # BUG
        dist.broadcast(x, 2)
        loss = layer(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


JOBS = (data_parallel, sharded, pipeline, experts, tensor_parallel, broadcasts)

if __name__ == "__main__":
    torch.manual_seed(RANK)
    chosen = JOBS if sys.argv[1] == "all" else [globals()[sys.argv[1]]]
    for job in chosen:
        store = os.environ["STORE"]
        dist.init_process_group("gloo", init_method="env://" if store == "tcp" else f"file://{store}/{job.__name__}",
                                rank=RANK, world_size=SIZE)
        job()
        dist.destroy_process_group()
