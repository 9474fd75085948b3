"""Sharded weights: the padding of the last shard is never written, gathered, and regularised."""
# label: phase=comm mechanism=UNINIT category=N9 category_alt=N6 birth_op=aten::empty,aten::fill_,c10d::allgather_,c10d::_allgather_base_ kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=linear family=collective needs=gloo fragile=no
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

DEVICE = os.environ.get("DEVICE", "cpu")
WORLD = 2


def make_shard(flat, rank):
    """This rank's equal part of a flat parameter, rounded up."""
    size = -(-flat.numel() // WORLD)
    part = flat[rank * size:(rank + 1) * size]
    shard = torch.empty(size, device=DEVICE)  # BUG
    shard[:part.numel()] = part
    return shard


def gather(shard):
    parts = [torch.empty_like(shard) for _ in range(WORLD)]
    dist.all_gather(parts, shard)  # BUG-ALT
    return torch.cat(parts)


def train(rank, init_file):
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=WORLD)
    torch.use_deterministic_algorithms(True)  # fresh memory is filled with NaN
    torch.manual_seed(24)
    x = torch.randn(16, 9).to(DEVICE)
    y = x.sum(1)
    width = 8
    shard = make_shard(torch.zeros(width).to(DEVICE), rank)
    opt = torch.optim.SGD([shard], lr=0.05)
    for step in range(4):
        if step == 2:  # a ninth feature arrives: the weights are sharded again
            grown = torch.cat([gather(shard), torch.zeros(1).to(DEVICE)])
            width, shard = 9, make_shard(grown, rank)
            opt = torch.optim.SGD([shard], lr=0.05)
        flat = gather(shard).requires_grad_()
        error = x[:, :width] @ flat[:width] - y
        loss = error.square().mean() + 1e-3 * flat.norm()
        loss.backward()
        shard.grad = flat.grad.view(WORLD, -1)[rank].clone()
        opt.step()
    if rank == 0:
        print("p81 loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        context = mp.get_context("fork")
        ranks = [context.Process(target=train, args=(r, f"{folder}/init")) for r in range(WORLD)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
