"""The first finding of a program is the same each time: over repeats, threads and tiers, in processes and in forks."""
import collections
import concurrent.futures
import itertools
import json
import pathlib

import pytest

import run_numsan

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
RUN_MANY = run_numsan.REPO / "tests" / "device" / "run_many.py"
FAMILIES = ["p01_click_logistic", "p39_silent_loudness", "p71_half_skip_connection"]
WAYS = list(itertools.product(("full", "boundary", "sentinel"), (1, 4)))  # tier, threads
REPEATS = 4  # of each way: 24 runs of each program. One is a process of its own, which takes long; the others are forks
JOBS = 2
# All programs are forked from the same processes.
pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("stability")]


def environment(threads):
    count = str(threads)
    return {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "DEVICE": "cpu"}


def first_finding(report, program):
    """(op, file, line, category) of the first finding of one run."""
    assert report["findings"], "nothing found"
    found = report["findings"][0]
    place = found["location"] or {"file": "none", "line": None}
    file = "the program" if place["file"] == str(program) else place["file"]
    return found["op"], file, place["line"], found["category"]["id"]


def of_a_process(program, tier, threads, folder):
    folder.mkdir()
    done = run_numsan.run(program, cwd=folder, options={"tier": tier, "log": "none"}, env=environment(threads))
    assert done.returncode == 0 and done.report is not None, done.describe()
    return first_finding(done.report, program)


def of_forks(tier, threads, folder):
    """{program: findings} of all repeats but one, in children of one process."""
    copies = {folder / f"{name}-{number}.py": name for name in FAMILIES for number in range(1, REPEATS)}
    folder.mkdir()
    for path, name in copies.items():
        path.write_text((PROGRAMS / f"{name}.py").read_text())
    done = run_numsan.run_command([run_numsan.PYTHON, RUN_MANY, folder, "cpu", *copies], env=environment(threads),
                                  options={"tier": tier, "log": "none", "report": folder / "report-%p.json"},
                                  cwd=folder, timeout=600)
    assert done.returncode == 0, done.describe()
    assert set(json.loads((folder / "status.json").read_text()).values()) == {0}
    seen = collections.defaultdict(list)
    for path, name in copies.items():
        seen[name].append(first_finding(json.loads(path.with_suffix(".json").read_text()), path))
    return seen


@pytest.fixture(scope="module")
def forks(warm, tmp_path_factory):
    """{way: {program: findings}}"""
    folder = tmp_path_factory.mktemp("forks")
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        return dict(zip(WAYS, pool.map(lambda way: of_forks(*way, folder / f"{way[0]}-{way[1]}"), WAYS)))


@pytest.mark.parametrize("name", FAMILIES)
def test_first_finding_is_the_same_in_every_run(name, forks, tmp_path):
    program = PROGRAMS / f"{name}.py"
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        own = list(pool.map(lambda way: of_a_process(program, *way, tmp_path / f"{way[0]}-{way[1]}"), WAYS))
    ways = collections.defaultdict(collections.Counter)
    for way, found in zip(WAYS, own):
        for one in [found, *forks[way][name]]:
            ways[one]["tier={} threads={}".format(*way)] += 1
    assert sum(count.total() for count in ways.values()) == REPEATS * len(WAYS)
    assert len(ways) == 1, "\n".join(f"{found}: {dict(count)}" for found, count in ways.items())
