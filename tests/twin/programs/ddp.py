"""Two ranks over gloo under torchrun: DistributedDataParallel, all_reduce, all_gather, broadcast."""
import gc
import time

import torch
import torch.distributed as dist
from state import show
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(20):
    x = torch.randn(8, 6)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    parts = [torch.empty(()) for _ in range(2)]
    part = loss.detach()
    dist.all_gather(parts, part)
    while any(tensor._use_count() > 1 for tensor in (mean, part, *parts)):
        time.sleep(0.001)  # a thread of gloo that drops a tensor once Python ends is aborted, numsan or not
    if rank == 0:
        print(step, mean.item() / 2, [part.item() for part in parts], flush=True)
if rank == 0:
    show(model)
dist.barrier()  # a rank that leaves while the other still talks to it aborts, numsan or not
del model, optimizer, loss, mean, part, parts
gc.collect()
dist.destroy_process_group()
