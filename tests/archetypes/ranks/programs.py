"""Programs of two ranks. RANK says which one this is; STORE is a folder that both know."""
import os

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANK = int(os.environ.get("RANK", "0"))


def join(name):
    dist.init_process_group("gloo", init_method=f"file://{os.environ['STORE']}/{name}", rank=RANK, world_size=2)


def shard_without_labels():
    """Data parallel: one rank's part of the third batch has no label, and its nan reaches everybody."""
    # expect: op=aten::div phase=forward kind=nan mechanism=DIV0 category=N4,N1 step=2
    join("shard")
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        x, labels = torch.randn(2, 6, 4)[RANK], torch.randint(0, 3, (2, 6))[RANK]
        labelled = torch.tensor(0.0 if step == 2 and RANK == 1 else 1.0).expand(6)
        each = F.cross_entropy(model(x), labels, reduction="none")
        loss = (each * labelled).sum() / labelled.sum()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()
    return model.module.weight


def functional_sum_in_half():
    """A functional collective sums gradients of 40000 in half before it divides by the number of ranks."""
    # expect: op=_c10d_functional::all_reduce phase=comm kind=inf mechanism=OVF category=N8,N9 step=2
    join("functional")
    layer = nn.Linear(4, 1, bias=False).half()
    nn.init.zeros_(layer.weight)
    opt = torch.optim.SGD(layer.parameters(), lr=1e-6)
    for scale in (1.0, 1.0, 1e4, 1.0):
        x = torch.full((4, 4), scale).half()
        loss = (layer(x) - 100).abs().sum()
        opt.zero_grad()
        loss.backward()
        total = functional.all_reduce(layer.weight.grad, "sum", dist.group.WORLD)  # BUG
        layer.weight.grad = total / 2
        opt.step()
    dist.destroy_process_group()
    return layer.weight


def sharded_parameters():
    """fully_shard: parameters are gathered into buffers that nobody initialised, gradients are scattered."""
    # expect: nothing
    join("sharded")
    torch.use_deterministic_algorithms(True)  # fresh memory is filled with nan
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    mesh = init_device_mesh("cpu", (2,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        x, labels = torch.randn(2, 6, 5)[RANK], torch.randint(0, 3, (2, 6))[RANK]
        loss = F.cross_entropy(model(x), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()
    return loss
