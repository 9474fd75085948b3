"""A collective's work must not hold its operands for our sake: gloo's threads drop it when they like, even after the
interpreter has gone."""
import pathlib

import run_numsan

PROGRAM = pathlib.Path(__file__).resolve().parent / "collective_operands.py"


def check(plain, watched):
    assert plain.returncode == 0 and "alone" in plain.stdout, plain.describe()
    assert (watched.returncode, watched.stdout) == (0, plain.stdout), f"{plain.stdout}\n{watched.describe()}"


def test_operands_are_held_as_without_numsan(warm, tmp_path):
    check(run_numsan.run_plain(PROGRAM, cwd=tmp_path), run_numsan.run(PROGRAM, cwd=tmp_path))


def test_operands_are_held_as_without_numsan_by_record_functions(no_key, tmp_path):
    check(run_numsan.run_plain(PROGRAM, cwd=tmp_path), run_numsan.run(PROGRAM, env=no_key, cwd=tmp_path))
