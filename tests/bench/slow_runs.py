#!/usr/bin/env python3
"""What the cures on the pages of `numsan explain NP1xx` save, and what numsan says that the losses cost.

usage: tests/bench/slow_runs.py [CODE ...] [--turns N]

Of each page the slow program and the healthy one run bare and take turns in one process; a step is from the end of one
optimizer's step to the end of the next, and the first two of a program are left out. Printed: the median steps, what
the cure saves, and what numsan with perf=1 says of the slow program in a run of its own. NP101 needs a device and is
left out.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import run_numsan  # noqa: E402
from explain_pages import HEALTHY, SICK, page_of, program_of  # noqa: E402

CODES = ["NP102", "NP103", "NP104", "NP105", "NP106", "NP107", "NP108", "NP109", "NP110", "NP111", "NP112", "NP113"]
TURNS = """
import json, statistics, sys, time
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
programs, turns = json.loads(sys.argv[1]), int(sys.argv[2])
ends = []
register_optimizer_step_post_hook(lambda *_: ends.append(time.perf_counter()))
steps = [[] for _ in programs]
for turn in range(turns + 1):
    for program, took in zip(programs, steps):
        ends.clear()
        exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})
        if turn > 0:
            took += [after - before for before, after in zip(ends[1:], ends[2:])]
print(json.dumps([1e3 * statistics.median(took) for took in steps]))
"""


def bare(code, turns):
    """Median steps in ms: slow, healthy."""
    programs = [program_of(page_of(code), heading) for heading in (SICK, HEALTHY)]
    done = subprocess.run([run_numsan.PYTHON, "-c", TURNS, json.dumps(programs), str(turns)], capture_output=True,
                          text=True, check=True, env=run_numsan.plain_environment())
    return json.loads(done.stdout.splitlines()[-1])


def said(code, folder):
    """What numsan says of the slow program."""
    program = folder / f"{code}.py"
    program.write_text(program_of(page_of(code), SICK))
    done = run_numsan.run(program, options={"perf": 1}, cwd=folder)
    found = [one for one in done.report["performance"]["findings"] if one["code"] == code]
    return found[0]["measured"] if found else "nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("codes", nargs="*", default=CODES)
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for code in args.codes:
            slow, healthy = bare(code, args.turns)
            print(f"{code}  slow {slow:.3g} ms, healthy {healthy:.3g} ms: saves {slow - healthy:.3g} ms, "
                  f"{100 * (1 - healthy / slow):.0f} %; numsan: {said(code, pathlib.Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
