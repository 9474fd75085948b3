# The rank and the size of torch.distributed's process group. Only what is imported already is asked.
import sys
rank = world_size = -1
group = sys.modules.get('torch.distributed')
if group is not None and group.is_available() and group.is_initialized():
    rank, world_size = group.get_rank(), group.get_world_size()
