"""Healthy trainings over thousands of steps, which must be met with silence; the same with a bug that strikes late."""
import pathlib

import pytest

import run_numsan

PROGRAMS = sorted(pathlib.Path(__file__).with_name("programs").glob("*.py"))
SHORT, SHORT_BUG = 240, 200
LONG, LATE_BUG = 5000, 3300
# Steps are counted by optimizers: a step that a loss scaler skips is none, and what follows an optimizer is the next.
SKIPPED_AT_MOST, AHEAD = 20, 1


def programs():
    return [pytest.param(path, id=path.stem) for path in PROGRAMS]


def must_be_silent(watched, plain):
    assert watched.returncode == plain.returncode == 0, watched.describe()
    assert watched.stdout == plain.stdout, f"{watched.describe()}\n--- without numsan\n{plain.stdout[-2000:]}"
    assert "nan" not in plain.stdout and "inf" not in plain.stdout, f"it is not healthy\n{plain.describe()}"
    assert not watched.findings and "NS" not in watched.stderr, watched.describe()


def must_find(program, bug_step, watched):
    assert len(watched.findings) == 1, watched.describe()
    finding = watched.findings[0]
    place = finding["location"]
    assert (place["file"], place["line"]) == (str(program), run_numsan.marked_line(program)), watched.describe()
    assert finding["severity"] == "error", watched.describe()
    assert bug_step - SKIPPED_AT_MOST <= finding["step"] <= bug_step + AHEAD, watched.describe()


def test_there_are_a_dozen():
    assert len(PROGRAMS) >= 12


@pytest.mark.parametrize("program", programs())
def test_bug_is_found(program, warm, tmp_path):
    must_find(program, SHORT_BUG, run_numsan.run_watched_fork(program, args=[SHORT, SHORT_BUG], cwd=tmp_path))


@pytest.mark.nightly
@pytest.mark.parametrize("program", programs())
def test_long_training_is_met_with_silence(program, warm, tmp_path):
    watched = run_numsan.run(program, args=[str(LONG)], cwd=tmp_path, timeout=600)
    must_be_silent(watched, run_numsan.run_plain(program, args=[str(LONG)], cwd=tmp_path, timeout=600))


@pytest.mark.nightly
@pytest.mark.parametrize("program", programs())
def test_late_bug_is_found(program, warm, tmp_path):
    args = [str(LONG), str(LATE_BUG)]
    must_find(program, LATE_BUG, run_numsan.run(program, args=args, cwd=tmp_path, timeout=600))
