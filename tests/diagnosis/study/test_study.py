"""The study itself: some 400 programs, run bare and watched, against the floors of study_targets.json."""
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("diagnosis study")]


def test_figures_are_above_their_floors(warm):
    done = subprocess.run([sys.executable, HERE / "run", "--require", HERE / "study_targets.json"],
                          capture_output=True, text=True, timeout=3 * 3600)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"


def test_a_watched_run_prints_what_a_bare_one_does(warm, tmp_path):
    import seeding
    import study_runs
    runs = study_runs.Runs(tmp_path)
    try:
        for base in seeding.BASES[::3]:
            healthy = seeding.of_base(base)[0]
            bare, watched = runs.run(healthy, "bare", 0), runs.run(healthy, "watched", 0)
            assert watched["status"] == 0, (base, watched)
            assert watched["figure"] == bare["figure"], base
    finally:
        runs.close()
