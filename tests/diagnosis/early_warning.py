#!/usr/bin/env python3
"""How long before its first bad value a diverging training is warned of, and whether healthy ones are left alone.

    tests/diagnosis/early_warning.py [WORD ...]     # programs whose path has one of the words; all without

Runs with diagnose=1, in forks of a process that has torch: growing programs with what diverges in the public suite and
in tests/programs, then healthy ones. Prints a line each, and the median of the leads. A program that is not warned of
counts with a lead of 0. Exit status 1 where a healthy one is warned of or
fails.
"""
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(TESTS / "support"), str(HERE)]
import healthy_programs  # noqa: E402
import run_numsan  # noqa: E402

# Of the suite: those whose label says that the learning rate, or growth without a bound, is the mistake.
SUITE = ["suite/programs/p50_learning_rate_typo.py", "suite/programs/p51_weight_decay_ten.py",
         "suite/programs/p53_unclipped_critic.py", "programs/learning_rate/victim.py"]


def growing():
    return [(path, ()) for path in [*sorted((HERE / "growth").glob("*.py")), *(TESTS / one for one in SUITE)]]


def run(program, args, clean=False):
    """With `clean` it must be seen that numsan was looking."""
    with tempfile.TemporaryDirectory() as folder:
        return run_numsan.run_watched_fork(program, options={"diagnose": 1}, args=args, cwd=pathlib.Path(folder),
                                           timeout=300, clean=clean)


def first_bad(report):
    """Of values that are not finite; of those that are too small for their type severity warning speaks."""
    return min((one["step"] for one in report["findings"] if one["severity"] == "error"), default=None)


def lead_of(program, args):
    """Steps between the warning and the first bad value, whether that lies in the interval, and the warning."""
    done = run(program, args)
    report = done.report or {"findings": []}
    bad = first_bad(report)
    warnings = report.get("diagnosis", {}).get("early_warnings", [])
    if bad is None:
        return None, None, warnings
    if not warnings or warnings[0]["step"] + 1 > bad:
        return 0, None, warnings
    one = warnings[0]
    return bad - one["step"] - 1, one["steps_least"] <= bad - one["step"] <= one["steps_most"], warnings


def what_is_wrong(program, args):
    """Of a run that should end well and not be warned of; empty where it does and is not."""
    done = run(program, args, clean=True)
    if done.returncode != 0:
        return f"ended with {done.returncode}\n{done.stderr}"
    warnings = done.report["diagnosis"]["early_warnings"]
    return f"warned of: {warnings}" if warnings else ""


def shown(program):
    return str(program.relative_to(TESTS))


def main(words):
    wanted = lambda program: not words or any(word in shown(program) for word in words)  # noqa: E731
    leads, inside, told = [], [], []
    for program, args in growing():
        if not wanted(program):
            continue
        lead, hit, warnings = lead_of(program, args)
        said = "no warning"
        if warnings:
            one = warnings[0]
            said = (f"{one['of']} {one['name'] or one['op']} {one['dtype']}, step {one['step']}: "
                    f"{one['steps']} ({one['steps_least']} to {one['steps_most']})")
        print(f"{shown(program)}: lead {lead}; {said}", flush=True)
        if lead is None:
            sys.exit(f"{shown(program)}: no value became bad")
        leads.append(lead)
        if hit is not None:
            inside.append(hit)
    for program, args in healthy_programs.short():
        if not wanted(program):
            continue
        try:
            wrong = what_is_wrong(program, args)
        except AssertionError as error:
            wrong = str(error)
        told.append(bool(wrong))
        if wrong:
            print(f"{shown(program)}: healthy, but {wrong}", flush=True)
    if leads:
        print(f"{len(leads)} growing programs: median lead {statistics.median(leads)} steps, "
              f"{sum(lead > 0 for lead in leads)} warned of; within the interval {sum(inside)} of {len(inside)}")
    print(f"{len(told)} healthy programs: {sum(told)} warned of, or failed")
    return int(any(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
