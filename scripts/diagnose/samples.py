"""The runs that the learned model is made from: of the study's open half, and of healthy programs.

A run is kept as the study keeps it (tests/diagnosis/study/study_runs.py), and not made again while its program is the
same.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

REPO = pathlib.Path(__file__).resolve().parents[2]
STUDY = REPO / "tests" / "diagnosis" / "study"
sys.path[:0] = [str(STUDY), str(STUDY.parent)]
import healthy_programs  # noqa: E402
import score  # noqa: E402
import seeding  # noqa: E402
import study_runs  # noqa: E402

SEEDS, HEALTHY_SEEDS = range(3), range(12)
SHORT_SEEDS, SHORT_STEPS = range(4), (36, 50, 75)  # a healthy run that is cut off is no ill one
FEWEST_PASSES = 32  # loss_says_what_is_learned() of host/diagnosis/rules/measures.h


class Sample(NamedTuple):
    """A run. `group` is what its programs have in common: it is held out as a whole. A healthy run has no `kind`."""
    name: str
    group: str
    kind: str | None
    seed: int
    features: dict
    ruled: str  # the first fault that a rule says of it today, "" where none does


class Healthy(NamedTuple):
    """A healthy program with arguments of its own, as study_runs.Runs takes it."""
    name: str
    group: str
    text: str
    path: pathlib.Path
    args: tuple


class Runs(study_runs.Runs):
    """Runs a healthy program where it is: some read files beside them."""

    def source(self, program):
        return program.path if isinstance(program, Healthy) else super().source(program)

    def watched(self, program, args):
        return super().watched(program, program.args if isinstance(program, Healthy) else args)


def healthy():
    for path, args in [*healthy_programs.short(), *healthy_programs.long()]:
        name = str(path.relative_to(REPO / "tests"))
        yield Healthy(".".join([f"healthy/{name}", *map(str, args)]), name, path.read_text(), path, args)


def cut_short(folder):
    """Healthy bases of the open half that end early."""
    for program in open_half():
        if program.kind is None:
            path = Runs(folder).source(program)
            for steps in SHORT_STEPS:
                for seed in SHORT_SEEDS:
                    yield Healthy(f"{program.base}/healthy.{steps}.{seed}", program.base, program.text, path,
                                  ("--seed", seed, "--steps", steps))


def open_half():
    return [one for one in seeding.programs() if one.base in seeding.OPEN]


def watched(folder):
    """(program, seed) of all runs that are learned from."""
    of_bases = [(one, seed) for one in open_half() for seed in (SEEDS if one.kind else HEALTHY_SEEDS)]
    return of_bases + [(one, 0) for one in [*healthy(), *cut_short(folder)]]


def record(folder, jobs):
    """Makes the runs that are missing."""
    def say(program, _, seed, run, left):
        print(f"{left:5d} left  {program.name} {seed} {run['error'] or ''}", flush=True)

    work = [*study_runs.work_of(open_half()), *((program, "watched", seed) for program, seed in watched(folder))]
    study_runs.run_all(folder, work, jobs, say, Runs)


def asked(report, *flags):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(report, file)
        file.flush()
        done = subprocess.run([study_runs.run_numsan.COMMAND, "diagnose", file.name, *flags],
                              capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"numsan diagnose: {done.returncode} {done.stderr}")
    return json.loads(done.stdout)


def samples(folder):
    """What was recorded, of runs that are long enough and of faults that are proven to do harm. What failed, or was not
    run, is told and left out."""
    runs, kept, left_out = Runs(folder), [], []
    _, fates = score.cases_of(open_half(), runs)
    for program, seed in watched(folder):
        if fates.get(program.name, ("proven",))[0] != "proven":
            continue
        run = runs.kept(program, "watched", seed)
        report = run and run["report"]
        if report and report.get("diagnosis"):
            if report["diagnosis"]["trend"]["count"] >= FEWEST_PASSES:
                kept.append((program, seed, report))
        else:
            left_out.append(f"{program.name} {seed}")
    if left_out:
        print(f"left out, failed or not run: {', '.join(left_out)}", file=sys.stderr)

    def sample(one):
        program, seed, report = one
        kind = None if isinstance(program, Healthy) else program.kind
        group = program.group if isinstance(program, Healthy) else program.base
        return Sample(program.name, group, kind, seed, asked(report, "--features"),
                      next((fault["code"] for fault in asked(report, "--format", "json") if fault["by"] == "rule"), ""))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(sample, kept))
