#!/usr/bin/env python3
"""Scores perf=1 on the slow programs of tests/perf/programs: found, at the right line, as costly as the cure saves?

usage: tests/perf/slow_set.py [NAME ...] [--turns N] [--said] [--require slow_targets.json]

Of each program the slow one and the cured one run bare and take turns in one process, so that a slow phase of the
machine hits both; a turn's step is the time from the second step's end to the last one's, over the steps between, and
the figure is the median turn, the first left out. What numsan says is of one run of each with perf=1. Printed per
program: the code that was found, whether its line is the marked one, the share of a step that it says, the share that
the cure saves, and their factor; then what is said of the cured ones, and the totals. --said leaves out the bare runs,
--require ends with 1 where a target is missed.
One thread for each op. Programs on a GPU run on the test device of tests/fakes/torch_device,
whose ops take 200 us: its times are of no real GPU.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import run_numsan  # noqa: E402
from slow_programs import environment_of_device, said_slow, slow_programs  # noqa: E402

TURNS = """
import contextlib, io, json, pathlib, statistics, sys, time
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
programs, turns = sys.argv[2:], int(sys.argv[1])
ends = []
register_optimizer_step_post_hook(lambda *_: ends.append(time.perf_counter()))
codes = [compile(pathlib.Path(path).read_text(), path, "exec") for path in programs]
steps = [[] for _ in codes]
for turn in range(turns + 1):
    for code, took in zip(codes, steps):
        ends.clear()
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, {"__name__": "__main__"})
        took.append((ends[-1] - ends[1]) / (len(ends) - 2))
print(json.dumps([1e3 * statistics.median(took[1:]) for took in steps]))
"""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LEAST = 0.02  # of a step, what is worth a finding


def environment_of(program):
    return {**ONE_THREAD, **(environment_of_device() if program.on_device else {})}


def bare(program, turns, folder):
    """Median steps in ms: slow, cured."""
    paths = [str(program.written(kind, folder)) for kind in ("slow", "cured")]
    done = subprocess.run([run_numsan.PYTHON, "-c", TURNS, str(turns), *paths], capture_output=True, text=True,
                          check=True, env=run_numsan.plain_environment(environment_of(program)))
    return json.loads(done.stdout.splitlines()[-1])


def said(program, kind, folder):
    """What numsan says of a program, as (code, line, share)."""
    path = program.written(kind, folder)
    place = pathlib.Path(folder) / f"{program.name}-{kind}"
    place.mkdir()
    done = run_numsan.run(path, options={"perf": 1}, env=environment_of(program), cwd=place, timeout=600)
    assert done.returncode == 0 and done.report is not None, done.describe()
    return [(code, line if file == str(path) else None, share) for code, file, line, share in said_slow(done.report)]


def best(program, found):
    """The finding that counts: of the right code and line, else of the right code."""
    fitting = [one for one in found if one[0] == program.code]
    return next((one for one in fitting if one[1] == program.line()), fitting[0] if fitting else None)


def shown(found):
    return ", ".join(f"{code} line {line} {share:.1%}" for code, line, share in found) or "nothing"


def score(program, turns, folder):
    """One program's row, printed; (found, line is right, factor or None, share saved or None, alarms of the twin)."""
    slow = said(program, "slow", folder)
    alarms = said(program, "cured", folder)
    one = best(program, slow)
    right = one is not None and one[1] == program.line()
    text = f"{program.name:28} {program.code or program.cause:16} {'found' if one else '-':6} "
    text += f"{'line' if right else '-':5}"
    factor = saves = None
    if turns:
        before, after = bare(program, turns, folder)
        saves = 1 - after / before
        text += f" {before:7.2f} ms {after:7.2f} ms saves {saves:6.1%}"
    if one:
        text += f" said {one[2]:6.1%}"
        if turns and saves > 0:
            factor = one[2] / saves
            text += f" factor {factor:4.2f}"
    others = [other for other in slow if other is not one]
    text += f"; others: {shown(others)}" if others else ""
    text += f"; OF THE CURED: {shown(alarms)}" if alarms else ""
    print(text, flush=True)
    return bool(one), right, factor, saves, alarms


def figures(rows):
    """What is held against targets, of (program, its score)s; None: there is none. `recall` is of the programs whose
    cause has a code, `recall of all` of the others, too."""
    coded = [row for program, row in rows if program.code]
    found = [row for _, row in rows if row[0]]
    factors = [row[2] for row in found if row[2] is not None]
    near = [factor for factor in factors if 0.5 <= factor <= 2]
    saved = [row[3] for row in found if row[3] is not None]

    def share(part, whole):
        return len(part) / len(whole) if whole else None
    return {"recall": share([row for row in coded if row[0]], coded), "recall of all": share(found, rows),
            "line": share([row for row in found if row[1]], found),
            "within a factor of two": share(near, factors),
            "cured with a finding": sum(bool(row[4]) for _, row in rows),
            "saves too little": sum(save < LEAST for save in saved) if saved else None}


def missed(measured, targets):
    """A line for each target that is missed."""
    lines = []
    for key, bound in targets.items():
        value = measured[key]
        if value is None:
            lines.append(f"target not measured: {key}")
        elif value < bound.get("at_least", value) or value > bound.get("at_most", value):
            lines.append(f"target missed: {key} is {value:.3g}, wanted {bound}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--said", action="store_true")
    parser.add_argument("--require", type=pathlib.Path, metavar="TARGETS",
                        help="exit with 1 where a target of this file is missed")
    args = parser.parse_args()
    if args.said and args.require:
        parser.error("--require needs the bare runs that --said leaves out")
    chosen = [program for program in slow_programs() if not args.names or program.name in args.names]
    with tempfile.TemporaryDirectory() as folder:
        rows = [(program, score(program, 0 if args.said else args.turns, folder)) for program in chosen]
    for code in sorted({program.code or program.cause for program in chosen}):
        own = [(program, row) for program, row in rows if (program.code or program.cause) == code]
        print(f"{code:16} found {sum(row[0] for _, row in own)} of {len(own)}, line {sum(row[1] for _, row in own)}")
    measured = figures(rows)
    for key, value in measured.items():
        print(f"{key:24} {'-' if value is None else f'{value:.3g}'}")
    for program, row in rows:
        if row[0] and row[3] is not None and row[3] < LEAST:
            print(f"the cure of {program.name} saves less than {LEAST:.0%}")
    if args.require:
        below = missed(measured, json.loads(args.require.read_text()))
        print("\n".join(below) if below else "all targets are met")
        return 1 if below else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
