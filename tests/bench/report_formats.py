#!/usr/bin/env python3
"""How long `numsan report` takes for the reports of many ranks, in each format.

    tests/bench/report_formats.py [--ranks 4096] [--findings 20] [--turns 3]

Each rank has a report of its own in one folder, made of the published example. First every finding is on one of 200
lines, then ("distinct") no two findings of all ranks are the same. The files are read once before. Prints the median
and the slowest turn, and the largest resident memory.
"""
import argparse
import copy
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMSAN = Path(os.environ.get("NUMSAN_BUILD", ROOT / "build")) / "bin/numsan"
sys.path.insert(0, str(ROOT / "tests/cli"))
import made_reports  # noqa: E402


def make(folder, ranks, findings, distinct):
    size = 0
    for rank in range(ranks):
        report = made_reports.example(rank=rank, world_size=ranks, pid=rank + 1)
        one = copy.deepcopy(report["findings"][0])
        frame = one["forward"]["stack"][0]
        one["stack"] += [dict(frame, line=line) for line in range(10)]  # as deep as those of real programs
        one["history"] = [{"step": step, "absmax": 1.5 ** step} for step in range(32)]
        report["findings"] = []
        for position in range(findings):
            number = rank * findings + position if distinct else (rank * 7 + position) % 200
            made = made_reports.finding(number, id=f"F{position + 1}", rank=rank)
            report["findings"].append({**made, "stack": one["stack"], "history": one["history"]})
        text = json.dumps(report, indent=1)
        size += len(text)
        (folder / f"numsan-{rank}.json").write_text(text)
    return size


def formats():
    rows = subprocess.run([NUMSAN, "table", "formats"], capture_output=True, text=True, check=True).stdout
    return [line.split(" | ")[0].strip("| ") for line in rows.splitlines()[2:] if "report" in line.split(" | ")[1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in [("--ranks", 4096), ("--findings", 20), ("--turns", 3)]:
        parser.add_argument(name, type=int, default=value)
    args = parser.parse_args()
    for distinct in (False, True):
        folder = Path(tempfile.mkdtemp(prefix="numsan-formats-"))
        try:
            size = make(folder, args.ranks, args.findings, distinct)
            print(f"{args.ranks} reports of {args.findings} findings, {size / 1e6:.0f} MB"
                  f"{', distinct' if distinct else ''}, load {os.getloadavg()[0]:.1f}", flush=True)
            known = formats()
            times = {name: [] for name in known}
            processor = {name: [] for name in known}
            sizes = {}
            for turn in range(args.turns):
                for name in known:
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    started = time.monotonic()
                    subprocess.run([NUMSAN, "report", folder, "--format", name, "-o", folder / "out"], check=True)
                    times[name].append(time.monotonic() - started)
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    processor[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
                    sizes[name] = (folder / "out").stat().st_size
            for name in known:
                print(f"  {name:12} median {statistics.median(times[name]):5.2f} s  slowest {max(times[name]):5.2f} s  "
                      f"processor {statistics.median(processor[name]):5.2f} s  "
                      f"{sizes[name] / 1e6:8.2f} MB written", flush=True)
            most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            print(f"  largest resident memory of all so far {most / 1024:.0f} MiB", flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
