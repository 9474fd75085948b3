"""Two processes that number themselves: nothing in their environment tells the rank."""
import sys

import torch
import torch.distributed
import torch.multiprocessing


def work(rank, meeting, bad):
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(2):
        x = torch.ones(4, 3) * (-1 if bad and rank == 1 and step == 1 else 1)
        loss = (x @ weight).log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, args=(sys.argv[1], len(sys.argv) > 2), nprocs=2)
