#!/usr/bin/env python3
"""What numsan keeps: resident memory of the same loop bare and watched, after 1,000 to 100,000 steps.

usage: tests/bench/memory.py [--steps N]        NUMSAN_PYTHON names the interpreter (default: the checkout's .venv)
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("NUMSAN_PYTHON", str(ROOT / ".venv/bin/python"))
LOOP = """
import gc, sys, torch
torch.manual_seed(0); torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(4, 16)
marks = [int(n) for n in sys.argv[1:]]
for step in range(1, marks[-1] + 1):
    optimizer.zero_grad(); model(x).square().mean().backward(); optimizer.step()
    if step in marks:
        gc.collect()
        resident = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS"))
        print(int(resident) / 1024)
"""


def resident(marks, watched):
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "NUMSAN_OPTIONS")}
    if watched:
        environment |= {"LD_PRELOAD": str(ROOT / "build/lib/libnumsan.so"), "NUMSAN_OPTIONS": "report=none"}
    command = [PYTHON, "-c", LOOP, *map(str, marks)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    if done.stderr:
        sys.exit(f"a healthy program printed\n{done.stderr}")
    return [float(line) for line in done.stdout.split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100_000)
    steps = parser.parse_args().steps
    preloaded = os.environ | {"LD_PRELOAD": str(ROOT / "build/lib/libnumsan.so")}
    # Compiles the adapter, if need be.
    subprocess.run([PYTHON, "-c", "import torch"], check=True, capture_output=True, env=preloaded)
    marks = sorted({max(1, steps // 100), max(1, steps // 10), steps})
    bare, watched = resident(marks, False), resident(marks, True)
    for step, a, b in zip(marks, bare, watched):
        print(f"{step:7} steps   bare {a:8.1f} MB   watched {b:8.1f} MB   {b - a:+6.1f} MB")


if __name__ == "__main__":
    main()
