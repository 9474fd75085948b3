#!/usr/bin/env python3
"""How long `numsan merge` takes for the reports of a large job, and how much memory.

    tests/bench/merge_ranks.py [--ranks 4096] [--findings 20] [--turns 3]

Of each 64 ranks one was first, and sent its values to all others, which received them at several places; findings are
as large as those of real programs (tests/bench/report_formats.py). First they are on one of 200 lines, then
("distinct") no two findings of all ranks are the same, and none was received. The files are read once before.
"""
import argparse
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

import report_formats

sys.path.insert(0, str(report_formats.ROOT / "tests/cli"))
import made_jobs  # noqa: E402

FORMATS = ("text", "json", "markdown")


def add_facts(folder, ranks, distinct):
    """The group of all ranks, and what went in its operations; the size of all files."""
    size = 0
    for rank in range(ranks):
        path = folder / f"numsan-{rank}.json"
        report = json.loads(path.read_text())
        report["run"].update(launcher="torchrun", job=made_jobs.JOB,
                             groups=[made_jobs.group("0", "default_pg", rank, ranks, f"0-{ranks - 1}", 4000)])
        for position, finding in enumerate(report["findings"]):
            finding["collectives"] = {"0": 100 + position}
            finding["sent"] = [made_jobs.operation(number=102 + position + i, to="x") for i in range(8)]
            if rank % 64 == 7:
                finding["sent"].insert(0, made_jobs.operation(number=101 + position, to="x"))
            elif not distinct:
                finding.update(mechanism="DATA", received=made_jobs.operation(number=101 + position, **{"from": "x"}))
        path.write_text(json.dumps(report, indent=1))
        size += path.stat().st_size
    return size


def measure(folder, turns):
    for name in FORMATS:
        times, processor = [], []
        for _ in range(turns):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            started = time.monotonic()
            subprocess.run([report_formats.NUMSAN, "merge", folder, "--format", name, "-o", folder / "out"], check=True)
            times.append(time.monotonic() - started)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        written = (folder / "out").stat().st_size / 1e6
        print(f"  {name:9} median {statistics.median(times):5.2f} s  slowest {max(times):5.2f} s  processor "
              f"{statistics.median(processor):5.2f} s  {written:8.2f} MB written", flush=True)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"  largest resident memory of all so far {most / 1024:.0f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in [("--ranks", 4096), ("--findings", 20), ("--turns", 3)]:
        parser.add_argument(name, type=int, default=value)
    args = parser.parse_args()
    for distinct in (False, True):
        folder = Path(tempfile.mkdtemp(prefix="numsan-merge-"))
        try:
            report_formats.make(folder, args.ranks, args.findings, distinct)
            size = add_facts(folder, args.ranks, distinct)
            print(f"{args.ranks} reports of {args.findings} findings, {size / 1e6:.0f} MB"
                  f"{', distinct' if distinct else ''}, load {os.getloadavg()[0]:.1f}", flush=True)
            measure(folder, args.turns)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
