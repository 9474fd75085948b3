#!/usr/bin/env python3
"""A snapshot of all that numsan reports of the suite, the archetypes, the bug programs and the twins, and what differs
between two: what guards a change that must not change a verdict.

    snapshot.py take OUT [--only PATTERN,...] [--forks] [--like BEFORE] [--jobs 2]
    snapshot.py compare BEFORE AFTER [--only PATTERN,...] [--forks]     lines "program: field: before -> after"

--forks leaves out what needs a process of its own, which takes most of the time. The status of compare is 1 where
there is a difference.

Some reports differ between runs of one build: a storage is known by its address, so that of births in place, of values
that share an address and of objects that Python frees late the count, the history, a name or a later finding depends on
where memory was. --like BEFORE runs what differs from BEFORE again, five times at most, keeps a run that is as before
and says which programs these were; a change of numsan differs in all six runs.
NUMSAN_BUILD names the build, NUMSAN_PYTHON the interpreter with torch, as for the tests.
"""
import argparse
import fnmatch
import json
import pathlib
import sys
import time

import normal_form
import snapshot_programs
import snapshot_runs

AGAIN = 5  # runs, of a program that is not as before


def chosen(names, options):
    """Those that --only and --forks ask for."""
    alone = {program.name for program in snapshot_programs.all_programs() if program.alone} if options.forks else ()
    return [name for name in names if name not in alone
            and any(fnmatch.fnmatch(name, pattern) for pattern in options.only.split(","))]


def take(options):
    programs = {program.name: program for program in snapshot_programs.all_programs()}
    names = chosen(programs, options)
    if not names:
        raise SystemExit(f"--only {options.only}: no program has such a name")
    started = time.monotonic()

    def say(program, left):
        if not options.quiet:
            print(f"{time.monotonic() - started:6.1f} s  {program.name}  status {left['status']}, "
                  f"{len(left['reports'])} reports", flush=True)

    def run(names):
        left = snapshot_runs.run_all([programs[name] for name in names], options.jobs, say)
        root = snapshot_programs.TESTS.parent
        return {name: normal_form.Normal(root, left[name]["folder"]).program(left[name]) for name in names}

    snapshot = run(names)
    if options.like:
        settle(snapshot, json.loads(options.like.read_text()), run)
    options.out.write_text(json.dumps(snapshot, indent=1, sort_keys=True) + "\n")
    print(f"{len(snapshot)} programs in {time.monotonic() - started:.0f} s: {options.out}")
    return 0


def settle(snapshot, before, run):
    """Runs again what differs, and keeps a run that is as before."""
    for number in range(2, AGAIN + 2):
        differing = [name for name in snapshot if name in before and snapshot[name] != before[name]]
        if not differing:
            return
        for name, again in run(differing).items():
            if again == before[name]:
                fields = [line.split(": ")[1] for line in
                          normal_form.differences({name: before[name]}, {name: snapshot[name]})]
                more = f" and {len(fields) - 3} more fields" if len(fields) > 3 else ""
                print(f"not the same in every run: {name}: as before in run {number}, else not in "
                      f"{', '.join(fields[:3])}{more}")
                snapshot[name] = again


def compare(options):
    before, after = (json.loads(path.read_text()) for path in (options.before, options.after))
    before, after = ({name: one[name] for name in chosen(one, options)} for one in (before, after))
    lines = normal_form.differences(before, after)
    print("\n".join(lines) if lines else f"no difference in {len(before)} programs")
    return 1 if lines else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    taking = commands.add_parser("take")
    taking.add_argument("out", type=pathlib.Path)
    taking.add_argument("--like", type=pathlib.Path, metavar="BEFORE")
    taking.add_argument("--jobs", type=int, default=2)
    taking.add_argument("--quiet", action="store_true")
    taking.set_defaults(run=take)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=pathlib.Path)
    comparing.add_argument("after", type=pathlib.Path)
    comparing.set_defaults(run=compare)
    for command in (taking, comparing):
        command.add_argument("--only", default="*", metavar="PATTERN,...")
        command.add_argument("--forks", action="store_true")
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
