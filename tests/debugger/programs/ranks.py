"""Two ranks; the first one makes a NaN, and both meet in a collective."""
import datetime
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=90))
values = torch.ones(2)
if dist.get_rank() == 0:
    values = torch.log(-values)  # BUG
dist.all_reduce(values)
print("rank", os.environ["RANK"], "at the end", flush=True)
dist.destroy_process_group()
