"""The first finding of a program is the same each time: over repeats, threads and tiers."""
import collections
import concurrent.futures
import itertools
import pathlib

import pytest

import run_numsan

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
FAMILIES = ["p01_click_logistic", "p39_silent_loudness", "p71_half_skip_connection"]
WAYS = list(itertools.product(("full", "boundary", "sentinel"), (1, 4)))  # tier, threads
REPEATS = 4  # of each way: 24 runs of each program
JOBS = 2


def first_finding(program, tier, threads, folder):
    """(op, line, category) of the first finding of one run."""
    folder.mkdir()
    count = str(threads)
    done = run_numsan.run(program, cwd=folder, options={"tier": tier, "log": "none"},
                          env={"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "DEVICE": "cpu"})
    assert done.returncode == 0, done.describe()
    assert done.findings, f"nothing found\n{done.describe()}"
    found = done.findings[0]
    place = found["location"] or {"file": "none", "line": None}
    return (found["op"], pathlib.Path(place["file"]).name, place["line"],
            found["category"]["id"])


@pytest.mark.parametrize("name", FAMILIES)
def test_first_finding_is_the_same_in_every_run(name, warm, tmp_path):
    program = PROGRAMS / f"{name}.py"
    runs = [(*way, tmp_path / f"{way[0]}-{way[1]}-{number}")
            for number in range(REPEATS) for way in WAYS]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        seen = list(pool.map(lambda run: first_finding(program, *run), runs))
    ways = collections.defaultdict(collections.Counter)
    for (tier, threads, _), found in zip(runs, seen):
        ways[found][f"tier={tier} threads={threads}"] += 1
    assert len(ways) == 1, "\n".join(f"{found}: {dict(count)}" for found, count in ways.items())
