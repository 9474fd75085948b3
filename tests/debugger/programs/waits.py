"""A bad value, and then a long time in which somebody may press Ctrl-C."""
import time

import torch


def ratio(x):
    y = x / (x - x)  # BUG
    return y


ratio(torch.ones(2))
print("waiting", flush=True)
for _ in range(600):
    time.sleep(0.1)
