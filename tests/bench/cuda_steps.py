#!/usr/bin/env python3
"""What numsan costs whole training steps on a GPU, tier by tier, against bare, anomaly mode and hooks that check every
module's output: the same model in one process a configuration, which take turns. Prints JSON.

usage: cuda_steps.py [--works A,B] [--tiers full,boundary,sentinel] [--also NAME=OPTIONS] [--device cuda|cpu|fakegpu]
                     [--turns N] [--seconds S] [--together N] [--out FILE] [--reports FOLDER]

Tiers are measured without a budget and without the warm-up's full scans; --also default=tier=auto is what users get.
Works are those of models.py, and graph-N: replays of a CUDA graph of N small ops, whose difference to bare, divided by
N, is what a scan node costs a replay. --also adds a configuration with any NUMSAN_OPTIONS. A turn takes about
--seconds.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import models
import turns

BENCH = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("NUMSAN_BUILD", str(BENCH.parents[1] / "build"))).resolve()
GRAPHS = ("graph-100",)
CHECKS = ("anomaly", "hooks")


def configurations(tiers, also):
    """{name: (options of numsan or None, check in the program)}; bare first."""
    found = {"bare": (None, "none")}
    for tier in tiers:
        found[tier] = (f"tier={tier}:budget=0:warmup=0", "none")
    for entry in also:
        name, _, options = entry.partition("=")
        found[name] = (options, "none")
    for check in CHECKS:
        found[check] = (None, check)
    return found


def start(work, name, configuration, options, folder):
    numsan, check = configuration
    env = turns.environment(None)
    if numsan is not None:
        report = pathlib.Path(options.reports or folder) / f"{work}-{name}.json"
        env = turns.environment(BUILD / "lib/libnumsan.so", f"{numsan}:underflow=0:log=none:report={report}")
    command = [sys.executable, BENCH / "steps_worker.py", work, options.device, check]
    return turns.Worker(command, env, folder, subprocess.PIPE)


def measured_together(work, chosen, options, folder):
    """{name: seconds per step of each turn}, and what each process said of itself."""
    workers = {name: start(work, name, configuration, options, folder) for name, configuration in chosen.items()}
    times = {name: [] for name in workers}
    try:
        for worker in workers.values():
            worker.await_ready()
        workers["bare"].turn(1)
        steps = max(1, min(1000, round(options.seconds / workers["bare"].turn(1))))
        for worker in workers.values():
            worker.turn(steps)
        for _ in range(options.turns):
            for name, worker in workers.items():
                times[name].append(worker.turn(steps))
        facts = {name: json.loads(worker.ask("facts")) for name, worker in workers.items()}
    except turns.DidNotStart:
        for worker in workers.values():
            worker.kill()
        raise
    for name, worker in workers.items():
        status, stderr = worker.end()
        facts[name] |= {"exit_status": status, "steps_a_turn": steps}
        if status != 0:
            raise turns.DidNotStart(f"{name} ended with {status}: {stderr[-2000:]}")
    return times, facts


def in_groups(chosen, size):
    """Configurations that live side by side; bare is in each group."""
    others = [name for name in chosen if name != "bare"]
    for at in range(0, len(others), size - 1):
        yield {name: chosen[name] for name in ("bare", *others[at:at + size - 1])}


def coverage_of(report):
    try:
        document = json.loads(report.read_text())
    except (OSError, ValueError):
        return None
    return {**document["coverage"], "verdict": document["verdict"], "steps": document["run"]["steps"]}


def measure(work, options):
    """A row of the result."""
    chosen = configurations(options.tiers, options.also)
    if work.startswith("graph-"):
        chosen = {name: one for name, one in chosen.items() if name not in CHECKS}
    size = min(options.together, len(chosen))
    while True:
        try:
            return measured_in_groups(work, chosen, size, options)
        except turns.DidNotStart as error:
            if size == 2 or "out of memory" not in str(error):
                raise
            size = max(2, (size + 1) // 2)
            print(f"{work}: out of memory, now {size} processes at a time", file=sys.stderr, flush=True)


def measured_in_groups(work, chosen, size, options):
    row = {"work": work, "title": getattr(models.WORKS.get(work), "title", work), "configurations": {}}
    with tempfile.TemporaryDirectory(prefix="steps-") as folder:
        for group in in_groups(chosen, size):
            times, facts = measured_together(work, group, options, folder)
            for name, seconds in times.items():
                if name in row["configurations"]:
                    continue
                one = {"seconds": turns.spread(seconds), "of_bare": turns.ratios(seconds, times["bare"]),
                       "facts": facts[name]}
                if chosen[name][0] is not None:
                    one["coverage"] = coverage_of(pathlib.Path(options.reports or folder) / f"{work}-{name}.json")
                if work.startswith("graph-"):
                    difference = [a - b for a, b in zip(seconds, times["bare"], strict=True)]
                    nodes = int(work.partition("-")[2])
                    one["microseconds_a_node"] = turns.spread([1e6 * value / nodes for value in difference])
                row["configurations"][name] = one
    return row


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", type=lambda text: text.split(","), default=[*models.names(), *GRAPHS])
    parser.add_argument("--tiers", type=lambda text: text.split(","), default=["full", "boundary", "sentinel"])
    parser.add_argument("--also", action="append", default=[], metavar="NAME=OPTIONS")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--together", type=int, default=7,
                        help="processes that keep their model at the same time; fewer where the device has no room")
    parser.add_argument("--reports", type=pathlib.Path, help="folder that keeps numsan's reports")
    parser.add_argument("--out", type=pathlib.Path, help="instead of stdout; rewritten after each work")
    options = parser.parse_args()
    for work in options.works:
        if work not in models.WORKS and not work.startswith("graph-"):
            parser.error(f"no work {work}: there are {', '.join([*models.WORKS, *GRAPHS])}")
    if options.together < 2:
        parser.error(f"--together {options.together}: expected 2 or more, bare is always one of them")
    return options


def main():
    options = parsed()
    result, status = {"device": options.device, "works": [], "failed": {}}, 0
    for work in options.works:
        try:
            row = measure(work, options)
            result["works"].append(row)
            print(f"{work}: " + ", ".join(f"{name} {100 * (one['of_bare']['median'] - 1):+.1f} %"
                                          for name, one in row["configurations"].items()), file=sys.stderr, flush=True)
        except (turns.DidNotStart, ValueError) as error:
            result["failed"][work], status = str(error), 1
            print(f"{work}: failed: {error}", file=sys.stderr, flush=True)
        if options.out:
            options.out.write_text(json.dumps(result, indent=1) + "\n")
    if not options.out:
        print(json.dumps(result, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main())
