"""Programs that watch their own gradients and skip or cure what is not finite: never an error, at most a warning."""
import pathlib

import pytest

import run_numsan

GUARDS = sorted((pathlib.Path(__file__).resolve().parent / "guards").glob("*.py"))


def test_there_are_guards():
    assert len(GUARDS) >= 4


@pytest.mark.parametrize("program", GUARDS, ids=lambda path: path.stem)
def test_guard_is_no_error(program, warm, tmp_path):
    watched = run_numsan.run_watched_fork(program, cwd=tmp_path, clean=True)
    plain = run_numsan.run_forked(program, cwd=tmp_path)
    assert watched.returncode == plain.returncode == 0, watched.describe()
    assert watched.stdout == plain.stdout and "finite True" in watched.stdout, watched.describe()
    assert watched.report is not None, watched.describe()
    run_numsan.validate(watched.report)
    assert [f["severity"] for f in watched.findings] in ([], ["warning"]), watched.describe()
