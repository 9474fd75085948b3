"""Two ranks whose TCPStore is another process's, which ends before one of them makes a bad value.

    gone_store.py

RANK and WORLD_SIZE say which rank this is; the store is at MASTER_PORT, of STORE_PROCESS, which rank 0 ends.
"""
import os

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False, wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=RANK, world_size=int(os.environ["WORLD_SIZE"]))
dist.barrier()
if RANK == 0:
    os.kill(int(os.environ["STORE_PROCESS"]), 9)
    while os.path.exists(f"/proc/{os.environ['STORE_PROCESS']}/exe"):
        pass
dist.barrier()
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for step in range(4):
    opt.zero_grad()
    loss = (w - w.detach()).sum() / torch.tensor(0.0 if step == 2 and RANK == 1 else 1.0)
    loss.backward()
    dist.all_reduce(w.grad)
    opt.step()
