"""Who holds the operand of a collective, alone and with a profiler that listens."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist


def held():
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    count = tensor._use_count()
    del work
    return count


with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    print("alone", held())
    with torch.profiler.profile() as profiler:
        print("profiled", held())
    keys = sorted(event.key for event in profiler.key_averages())
    print("events", [key for key in keys if "gloo" in key or "c10d" in key])
    print("alone again", held())
    dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # see tests/twin/programs/ddp.py
