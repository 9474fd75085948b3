"""Two ranks normalise by a common maximum; a rank with an empty shard sends minus infinity."""
# label: tempts=collective max_severity=none dtype=fp32 needs=gloo
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def shared_maximum(rows):
    """Largest entry over all ranks; the neutral element of max where a rank has no rows."""
    peak = torch.full((), float("-inf"), device=DEVICE)
    if len(rows):
        peak = rows.max()
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    return peak


def train(rank, rendezvous):
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    torch.manual_seed(26)
    model = nn.Linear(5, 1).to(DEVICE)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        rows = 10.0 * torch.rand(6, 5)
        rows = (rows if rank == 0 or step % 2 == 0 else rows[:0]).to(DEVICE)
        rows = rows / shared_maximum(rows)
        loss = (model(rows) - rows.sum(1, keepdim=True)).square().sum()
        opt.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= 12
        opt.step()
    dist.barrier()
    dist.destroy_process_group()
    return loss.item()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]), os.environ["RENDEZVOUS"])
        os._exit(0)  # gloo's threads may still hold tensors: they must not meet the interpreter's end
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = os.path.join(folder, "store")
        environment = {**os.environ, "RANK": "1", "RENDEZVOUS": rendezvous}
        peer = subprocess.Popen([sys.executable, __file__], env=environment)
        loss = train(0, rendezvous)
        status = peer.wait()
    print(f"all_reduce max: loss {loss:.3f}")
    sys.exit(status)
