"""Healthy programs that look slow: nothing is said of what only resembles a dropped gradient or a needless copy."""
import pathlib

import pytest

import run_numsan
from slow_programs import said_slow

pytestmark = pytest.mark.xdist_group("perf")  # one worker has the process of which they are forks
LOOKS_SLOW = sorted((pathlib.Path(__file__).parent / "looks_slow").glob("*.py"))


@pytest.mark.parametrize("program", LOOKS_SLOW, ids=lambda program: program.stem)
def test_what_only_looks_slow_is_no_finding(program, warm, tmp_path):
    done = run_numsan.run_watched_fork(program, options={"perf": 1}, cwd=tmp_path, clean=True)
    assert said_slow(done.report) == [] and done.stderr == "", (done.report["performance"], done.stderr)
    assert done.report["performance"]["steps"] == 16, done.report["performance"]
