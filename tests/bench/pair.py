#!/usr/bin/env python3
"""What numsan costs a program: the same work bare and with the full scan, taking turns in one run.

usage: tests/bench/pair.py [WORK ...] [--turns N] [--hook] [--tiers] [--dump] [--break] [--perf] [--diagnose]
                           [--regions]
WORK: launch blocks adam compiled gpt2 compiled_gpt2 resnet start (default: all)

`launch`, `blocks`, `adam` and `compiled`: a bare and a watched process live side by side on one core and take turns of
some steps each, so that a slow phase of the machine hits both. All are bound by launching small operators: layers of 16
values with AdamW, of 8 values with SGD, Adam one by one over 5,000 parameters, and `blocks` with its model and loss
compiled by torch.compile. The others are a process per turn.
Printed per configuration: the median turn, and the median of each turn's ratio to the bare one just before it. --hook
adds a configuration that follows every op but reads no tensor; only a build with NUMSAN_BENCH=ON knows it. --dump adds
one that holds arguments for the option `dump`, --perf and --diagnose those that measure, --regions one that does not
look into compiled regions, with their ratios to the full scan just before it, too.
NUMSAN_PYTHON names the interpreter (default: the checkout's .venv), NUMSAN_BUILD the build folder (default: build).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import turns

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("NUMSAN_BUILD", str(ROOT / "build"))).resolve()
PYTHON = os.environ.get("NUMSAN_PYTHON", str(ROOT / ".venv/bin/python"))

LAUNCH = """
import os, time, torch
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # all on one core, which then never sleeps
torch.manual_seed(0); torch.set_num_threads(1)
model = torch.nn.Sequential(*[m for _ in range(8)
                              for m in (torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU())])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
x = torch.randn(4, 16)
def step():
    loss = model(x).pow(2).mean(); optimizer.zero_grad(); loss.backward(); optimizer.step()
for _ in range(60): step()
"""

BLOCKS = """
import os, time, torch
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
torch.manual_seed(0); torch.set_num_threads(1)
model = torch.nn.Sequential(*[m for _ in range(20)
                              for m in (torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8))])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(4, 8)
def step():
    loss = model(x).pow(2).mean(); optimizer.zero_grad(); loss.backward(); optimizer.step()
for _ in range(60): step()
"""

COMPILED = BLOCKS + """
@torch.compile
def loss_of(x):
    return model(x).pow(2).mean()
def step():
    loss = loss_of(x); optimizer.zero_grad(); loss.backward(); optimizer.step()
for _ in range(60): step()
"""

ADAM = """
import os, time, torch
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
torch.manual_seed(0); torch.set_num_threads(1)
parameters = [torch.nn.Parameter(torch.randn(4)) for _ in range(5000)]
optimizer = torch.optim.Adam(parameters, lr=1e-4, foreach=False)
def step():
    loss = torch.cat(parameters).pow(2).mean(); optimizer.zero_grad(); loss.backward(); optimizer.step()
for _ in range(3): step()
"""

GPT2 = """
import time, torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.a, self.b = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.a(x)).split(c, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.b(x))
class Model(nn.Module):
    def __init__(self, words=8192, width=384, layers=6):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(256, width)
        self.blocks, self.norm = nn.Sequential(*[Block(width, 6) for _ in range(layers)]), nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
    def forward(self, x):
        return self.head(self.norm(self.blocks(self.word(x) + self.place.weight)))
model = Model(); optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x = torch.randint(0, 8192, (8, 257))
def step():
    loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
step(); step()
"""

COMPILED_GPT2 = GPT2 + "model = torch.compile(model)\nstep(); step()\n"

RESNET = """
import time, torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, s, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.skip = nn.Conv2d(i, o, 1, s, bias=False) if (i, s) != (o, 1) else nn.Identity()
    def forward(self, x):
        return torch.relu(self.nb(self.b(torch.relu(self.na(self.a(x))))) + self.skip(x))
blocks = [Block(i, o, s) for i, o, s in ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1),
                                         (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))]
model = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
x, y = torch.randn(16, 3, 64, 64), torch.randint(0, 10, (16,))
def step():
    loss = nn.functional.cross_entropy(model(x), y); optimizer.zero_grad(); loss.backward(); optimizer.step()
step(); step()
"""

START = """
import os, time
import torch
with open("/proc/self/stat") as stat: born = int(stat.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
print(time.clock_gettime(time.CLOCK_BOOTTIME) - born)
"""

WORKS = {"launch": (LAUNCH, 100), "blocks": (BLOCKS, 60), "adam": (ADAM, 1), "compiled": (COMPILED, 100),
         "gpt2": (GPT2, 4), "compiled_gpt2": (COMPILED_GPT2, 4), "resnet": (RESNET, 4),
         "start": (START, 0)}  # and steps in a block
SIDE_BY_SIDE = ("launch", "blocks", "adam", "compiled")
CONFIGURATIONS = {"bare": None, "full": {"NUMSAN_OPTIONS": "report=none"}}
HOOK = {"NUMSAN_OPTIONS": "report=none", "NUMSAN_BENCH_NO_SCAN": "1"}


def environment_of(watched):
    if watched is None:
        return turns.environment(None)
    return {**turns.environment(BUILD / "lib/libnumsan.so"), **watched}


def worker(work, name, watched, folder):
    """A process that has warmed up and waits for its turn."""
    try:
        return turns.Worker([PYTHON, "-c", WORKS[work][0] + turns.TURNS], environment_of(watched), folder).await_ready()
    except turns.DidNotStart as error:
        sys.exit(f"{work}, {name}: the program did not start: {error}")


def side_by_side(work, count, folder):
    workers = {name: worker(work, name, watched, folder) for name, watched in CONFIGURATIONS.items()}
    times = {name: [] for name in CONFIGURATIONS}
    for _ in range(count):
        for name, process in workers.items():
            times[name].append(process.turn(WORKS[work][1]))
    for process in workers.values():
        process.end()
    return times


def one_by_one(work, count, folder):
    times = {name: [] for name in CONFIGURATIONS}
    for _ in range(count):
        for name, watched in CONFIGURATIONS.items():
            process = worker(work, name, watched, folder)
            times[name].append(process.turn(WORKS[work][1]))
            process.end()
    return times


def starting(work, count, folder):
    times = {name: [] for name in CONFIGURATIONS}
    for _ in range(count):
        for name, watched in CONFIGURATIONS.items():
            done = subprocess.run([PYTHON, "-c", WORKS[work][0]], cwd=folder, env=environment_of(watched),
                                  capture_output=True, text=True, check=True)
            if done.stderr:
                sys.exit(f"{work}: a healthy program printed\n{done.stderr}")
            times[name].append(float(done.stdout))
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("works", nargs="*", default=list(WORKS))
    parser.add_argument("--turns", type=int, help="of each configuration (default: 30 side by side, else 7)")
    parser.add_argument("--hook", action="store_true", help="also the hook without the scan")
    parser.add_argument("--tiers", action="store_true", help="also the tiers boundary and sentinel")
    parser.add_argument("--dump", action="store_true", help="also with the option `dump`")
    parser.add_argument("--break", dest="breaks", action="store_true", help="also with the option `break`")
    parser.add_argument("--perf", action="store_true", help="also with the option `perf`")
    parser.add_argument("--diagnose", action="store_true", help="also with the option `diagnose`")
    parser.add_argument("--regions", action="store_true", help="also without looking into compiled regions")
    arguments = parser.parse_args()
    if arguments.regions:
        CONFIGURATIONS["no regions"] = {"NUMSAN_OPTIONS": "report=none:regions=0"}
    for name in ("perf", "diagnose"):
        if getattr(arguments, name):
            CONFIGURATIONS[name] = {"NUMSAN_OPTIONS": f"report=none:{name}=1:log=none"}
    if arguments.dump:
        CONFIGURATIONS["dump"] = {"NUMSAN_OPTIONS": "report=none:dump=dumps"}
    if arguments.breaks:
        CONFIGURATIONS["break"] = {"NUMSAN_OPTIONS": "report=none:break=1"}
    if arguments.tiers:
        for tier in ("boundary", "sentinel"):
            CONFIGURATIONS[tier] = {"NUMSAN_OPTIONS": f"report=none:tier={tier}"}
    if arguments.hook:
        CONFIGURATIONS["hook"] = HOOK
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([PYTHON, "-c", "import torch"], env=environment_of(CONFIGURATIONS["full"]), check=True,
                       capture_output=True)
        for work in arguments.works:
            run = side_by_side if work in SIDE_BY_SIDE else starting if work == "start" else one_by_one
            times = run(work, arguments.turns or (30 if work in SIDE_BY_SIDE else 7), folder)
            shown = [(name, seconds, "bare") for name, seconds in times.items()]
            for name in ("dump", "perf", "diagnose"):
                if name in times and work != "start":
                    shown.append(("to full", times[name], "full"))
            for name, seconds, other in shown:
                ratio = turns.ratios(seconds, times[other])
                print(f"{work:8} {name:8} {turns.spread(seconds)['median'] * 1e3:10.2f} ms  "
                      f"{100 * (ratio['median'] - 1):+6.1f} %   (half of {ratio['turns']} turns within "
                      f"{100 * (ratio['low'] - 1):+.1f}..{100 * (ratio['high'] - 1):+.1f} %)", flush=True)


if __name__ == "__main__":
    main()
