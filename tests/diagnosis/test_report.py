"""Training faults that a run has printed, shown again from its report."""
import json
import subprocess

import pytest

import run_numsan
from explain_pages import SICK, page_of, program_of


@pytest.fixture(scope="module")
def sick(warm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sick")
    program = folder / "program.py"
    program.write_text(program_of(page_of("ND101"), SICK))
    return run_numsan.run(program, launcher="run", options={"diagnose": 1}, cwd=folder)


def shown(report):
    done = subprocess.run([run_numsan.COMMAND, "report", report], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_faults_are_shown_as_the_run_printed_them(sick):
    assert "fault[ND101]: " in sick.stderr, sick.describe()
    assert sick.stderr.rstrip("\n") in shown(sick.report_path)


def test_report_without_faults_shows_none(sick, tmp_path):
    report = json.loads(json.dumps(sick.report))
    report["diagnosis"]["faults"] = []
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert "fault[" not in shown(tmp_path / "report.json")
