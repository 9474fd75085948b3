"""The training of tests/bench/soak.py: small; each step makes modules, closures and lambdas, some a function and an
optimizer. soak_program.py KIND STEPS WARM_UP MARKS KEPT prints step, seconds and resident MB at marks after WARM_UP."""
import gc
import random
import sys
import time

import torch

KIND = sys.argv[1]
STEPS, WARM_UP, MARKS, KEPT = map(int, sys.argv[2:])
POISONED_FROM = 100


class Inner(torch.nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((4,), 0.5))
        self.act = lambda x: torch.tanh(x) + shift

    def forward(self, x):
        return self.act(x * self.weight)


class Block(torch.nn.Module):
    """Two modules on a stack make it one of its own, as addresses of single ones come again soon."""
    def __init__(self, shift):
        super().__init__()
        self.inner = Inner(shift)

    def forward(self, x, made):
        x = self.inner(x)
        x = self.inner(x)
        return made(self.inner(x))


class Again(torch.nn.Module):
    def forward(self, x):
        return (x - 10).sqrt().sum()  # AGAIN


def closure_over(scale):
    def scaled(x):
        return x * scale
    return scaled


def function_of(step):
    """Code of its own: another name, and now and then another number of lines."""
    scope = {}
    exec(f"def made_{step}(x):\n{chr(10) * (step % 5)}    return x.clamp(-{step % 7 + 2}, {step % 7 + 2})\n", scope)
    return scope[f"made_{step}"]


def resident():
    gc.collect()
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS"))) / 1024


def train():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    order = random.Random(0)
    weight = torch.nn.Parameter(torch.full((4,), 0.1))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    batches = torch.rand(64, 4)
    made = function_of(0)
    kept = [None] * KEPT
    marks = {WARM_UP + (STEPS - WARM_UP) * i // MARKS for i in range(MARKS + 1)}
    start = time.time()
    for step in range(1, STEPS + 1):
        if step % 10 == 0:
            made = function_of(step)
        block, scaled = Block(step % 3 * 0.1), closure_over(step % 5 * 0.1 + 0.5)
        own = torch.optim.SGD(block.parameters(), lr=1e-3) if step % 100 == 0 else None
        kept[order.randrange(KEPT)] = block, scaled, made
        x = batches[step % 64]
        loss = (block(scaled(x), made) * weight).sum()
        if KIND == "poisoned" and step == POISONED_FROM:
            loss = loss + (weight - 1).log().sum()  # POISON
        if KIND == "poisoned" and step > POISONED_FROM:
            Again()(x).item()
        if KIND == "healthy" and step == STEPS:
            loss = loss + (weight - 1).log().sum()  # BUG
        if step % 10 == 0:  # the other steps are forward only, so that a million take minutes
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if own is not None:
            own.step()
        if step in marks:
            print(step, time.time() - start, resident(), flush=True)


train()
