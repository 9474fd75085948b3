"""Every program and control of the suite, recorded and replayed: the replay makes the report of the run."""
import pathlib
import subprocess

import pytest

import run_numsan

HERE = pathlib.Path(__file__).resolve().parent


@pytest.mark.nightly
def test_each_recording_of_the_suite_has_the_verdict_of_its_run(warm, tmp_path):
    done = subprocess.run([run_numsan.PYTHON, HERE / "whole_suite.py", "--keep", tmp_path / "recordings"],
                          capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
