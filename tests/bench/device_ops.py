#!/usr/bin/env python3
"""What numsan itself costs the host for an op on a device: samples of the processor in its libraries, on the program's
thread, on the test device. What the driver takes for a launch is not in it, as the fake one is not like a real one.

usage: device_ops.py [--turns N] [--ops N]    needs `perf`

Prints nanoseconds an op: lean, of a step of which nothing is paid for, so that the op is noted and not scanned;
scanned, with a scan of its output. Each is the difference of two runs, of N ops and of three times as many.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import device_environment  # noqa: E402
import run_numsan  # noqa: E402
import turns  # noqa: E402

WORKER = """
import sys
import torch
import fakegpu
x, y = torch.ones(256, device="fakegpu"), torch.ones(256, device="fakegpu")
for _ in range(int(sys.argv[1]) // 200):  # so that no queue is ever full
    for _ in range(200): x.add(y)
    torch.fakegpu.synchronize()
"""
OPTIONS = {"lean": "tier=sentinel:warmup=0", "scanned": "tier=full:warmup=0:budget=0"}
HERTZ = 5000


def own_seconds(options, ops, folder):
    """Of the thread that has most samples, in libraries of numsan's."""
    data = Path(folder) / "perf.data"
    device = {**device_environment.of_test_device(), "LD_LIBRARY_PATH": str(run_numsan.BUILD / "fakes"),
              "NUMSAN_CACHE": str(run_numsan.CACHE)}
    env = {**turns.environment(run_numsan.LIBRARY, f"{options}:report=none"), **device}
    preload = env.pop("LD_PRELOAD")
    subprocess.run(["perf", "record", "-q", "-F", str(HERTZ), "-o", data, "env", f"LD_PRELOAD={preload}",
                    run_numsan.PYTHON, "-c", WORKER, str(ops)], env=env, check=True)
    script = subprocess.run(["perf", "script", "-i", data, "-F", "tid,ip,dso"], capture_output=True, text=True,
                            check=True)
    samples = collections.defaultdict(collections.Counter)
    for line in script.stdout.splitlines():
        thread, _, rest = line.strip().partition(" ")
        library = Path(rest.rpartition("(")[2].rstrip(")\n")).name
        samples[thread][library.startswith(("libnumsan_core", "libnumsan_torch"))] += 1
    return max(samples.values(), key=lambda counts: counts.total())[True] / HERTZ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--ops", type=int, default=100_000)
    arguments = parser.parse_args()
    taken = {name: [] for name in OPTIONS}
    with tempfile.TemporaryDirectory(prefix="numsan-device-ops-") as folder:
        for _ in range(arguments.turns):
            for name, options in OPTIONS.items():
                few, many = (own_seconds(options, ops, folder) for ops in (arguments.ops, 3 * arguments.ops))
                taken[name].append(1e9 * (many - few) / (2 * arguments.ops))
    for name, values in taken.items():
        found = turns.spread(values)
        print(f"{name:<8} {found['median']:5.0f} ns an op ({found['low']:.0f} to {found['high']:.0f})")


if __name__ == "__main__":
    os.chdir(run_numsan.REPO)
    main()
