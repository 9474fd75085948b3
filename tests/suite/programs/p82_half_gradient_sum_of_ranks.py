"""Data parallel in half: each rank's gradient of 40000 is finite, their sum is not."""
# label: phase=comm mechanism=OVF category=N8 category_alt=N9 birth_op=c10d::allreduce_ kind=-inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp16 model=linear family=collective needs=gloo fragile=no
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
WORLD = 2


def average_gradients(model):
    """One bucket for all gradients: sum over the ranks first, division after."""
    grads = [p.grad for p in model.parameters()]
    bucket = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(bucket)  # BUG
    bucket = bucket / dist.get_world_size()
    offset = 0
    for g in grads:
        g.copy_(bucket[offset:offset + g.numel()].view_as(g))
        offset += g.numel()


def train(rank, init_file):
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=WORLD)
    model = nn.Linear(4, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    model = model.half().to(DEVICE)
    opt = torch.optim.SGD(model.parameters(), lr=1e-6)
    torch.manual_seed(25 + rank)
    for step in range(4):
        x = torch.rand(4, 4)
        if step == 2:  # one feature of this batch is in metres, not kilometres
            x[:, 1] = 10000.0
        target = torch.full((4, 1), 100.0).half().to(DEVICE)
        prediction = model(x.half().to(DEVICE))
        loss = nn.functional.l1_loss(prediction, target, reduction="sum")
        opt.zero_grad()
        loss.backward()
        average_gradients(model)
        opt.step()
    if rank == 0:
        print("p82 loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # They end as forks do: at an interpreter's end gloo's thread may still hold a tensor of Python's.
        mp.start_processes(train, args=(f"{folder}/init",), nprocs=WORLD, start_method="fork")
