#!/usr/bin/env python3
"""Whether memory stays flat in a long run whose steps make modules, closures, lambdas, functions and optimizers.

usage: tests/bench/soak.py [--steps N] [--warm-up N] [--kind healthy|poisoned] [--bare] [--keep N]
       NUMSAN_PYTHON names the interpreter (default: the checkout's .venv), NUMSAN_BUILD the build (default: build)

Prints resident memory after the warm-up and at ten marks, and its growth from then on by the line through the marks.
`healthy` has a bug in its last step, which must be named at its line. In `poisoned` the parameters are NaN from step
100 on, and each later step makes NaNs anew and reads one: one finding for either line. Exit status 1: a wrong finding.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("NUMSAN_BUILD", ROOT / "build")).resolve()
PYTHON = os.environ.get("NUMSAN_PYTHON", str(ROOT / ".venv/bin/python"))
PROGRAM = ROOT / "tests/support/soak_program.py"
MARKS = 10


def soak(kind, steps, warm_up, *, kept=2000, bare=False, folder=None, timeout=None):
    """The rows (step, seconds, MB) of a run, and its report (None of a bare run)."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "NUMSAN_OPTIONS")}
    environment |= {"OMP_NUM_THREADS": "1", "NUMSAN_CACHE": str(BUILD / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        report = pathlib.Path(scratch, "report.json")
        if not bare:
            environment |= {"LD_PRELOAD": str(BUILD / "lib/libnumsan.so"), "NUMSAN_OPTIONS": f"report={report}"}
        command = [PYTHON, str(PROGRAM), kind, *map(str, (steps, warm_up, MARKS, kept))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, cwd=scratch)
        if done.returncode != 0:
            raise RuntimeError(f"exit status {done.returncode}\n{done.stdout}{done.stderr[-4000:]}")
        rows = [(int(step), float(seconds), float(size)) for step, seconds, size in
                (line.split() for line in done.stdout.splitlines())]
        return rows, json.loads(report.read_text()) if not bare else None


def growth(rows):
    """MB a step and MB a second: least squares over all marks."""
    def slope(x, y):
        mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
        return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)
    step, seconds, size = zip(*rows)
    return slope(step, size), slope(seconds, size)


def wrong_findings(kind, report):
    """What is not as it should be, in words."""
    marks = {"healthy": ["# BUG"], "poisoned": ["# POISON", "# AGAIN"]}[kind]
    lines = PROGRAM.read_text().splitlines()
    expected = sorted(next(n for n, line in enumerate(lines, 1) if line.endswith(mark)) for mark in marks)
    found = sorted((finding["location"] or {}).get("line") or 0 for finding in report["findings"])
    return [] if found == expected else [f"findings at lines {found}, not {expected}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--warm-up", type=int, default=100_000)
    parser.add_argument("--kind", choices=["healthy", "poisoned"], default="healthy")
    parser.add_argument("--keep", type=int, default=2000, help="modules that are alive at a time")
    parser.add_argument("--bare", action="store_true", help="without numsan")
    given = parser.parse_args()
    if not given.bare:  # compiles the adapter, if need be
        soak("healthy", 20, 10, kept=5)
    rows, report = soak(given.kind, given.steps, given.warm_up, kept=given.keep, bare=given.bare)
    for step, seconds, size in rows:
        print(f"{step:9,} steps {seconds:8.0f} s {size:9.2f} MB   {size - rows[0][2]:+7.2f} MB since the warm-up")
    a_step, a_second = growth(rows)
    print(f"{given.kind}{' (bare)' if given.bare else ''}: {a_step * 1e6:+.2f} MB a million steps, "
          f"{a_second * 3600:+.2f} MB an hour")
    if report is None:
        return 0
    print("forgotten:", report["coverage"].get("forgotten", {}))
    wrong = wrong_findings(given.kind, report)
    print(*wrong or [f"findings as expected: {len(report['findings'])}"], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
