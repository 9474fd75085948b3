"""A thread a request, for thousands of them: how much the process grows."""
import threading

import torch

x = torch.ones(4)
weight = torch.ones(4, requires_grad=True)


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096


def answer():
    torch.cat([x, x])
    weight * 2


def serve(count):
    for _ in range(count):
        thread = threading.Thread(target=answer)
        thread.start()
        thread.join()


serve(200)
before = resident()
serve(2000)
print(resident() - before)
