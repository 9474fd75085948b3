"""Real trainings with a seeded fault, and the same without: what `numsan diagnose` says of each.

The rules were written with `mlp.py` at hand; the other programs were written before the rules ran, and are what
figures are made of (docs/accuracy.md)."""
import json
import pathlib
import re
import subprocess

import pytest

import run_numsan

pytestmark = pytest.mark.xdist_group("diagnose")  # one worker has the process of which they are forks
FOLDER = pathlib.Path(__file__).with_name("programs")
PROGRAMS = sorted(FOLDER.glob("*.py"))
HEALTHY = sorted(FOLDER.with_name("healthy").glob("*.py"))
OPTIONS = {"diagnose": 1}


def faults_of(program):
    """The faults that a program can be given: those that it names."""
    return sorted(set(re.findall(r'"(ND\d+)"', program.read_text())))


# Seeded faults of which nothing is said, and why; none of them may be taken for another fault.
MISSED = {
    ("regression", "ND106"): "the last layer alone learns the mean, so the loss falls",
}
CASES = [pytest.param(program, fault, id=f"{program.stem}-{fault}") for program in PROGRAMS
         for fault in faults_of(program)]


def marked(program, fault):
    """The lines that may be named for the fault: their comment names it."""
    lines = program.read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if fault in line.partition("  # ")[2].split()]


def run(program, fault, folder):
    return run_numsan.run_watched_fork(program, options=OPTIONS, args=[fault], cwd=folder)


def diagnose(report, *flags):
    return subprocess.run([run_numsan.COMMAND, "diagnose", report, *flags], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("program, fault", CASES)
def test_fault_is_first_and_at_its_line(program, fault, warm, tmp_path):
    done = run(program, fault, tmp_path)
    assert done.returncode == 0, done.describe()
    if (program.stem, fault) in MISSED:
        assert done.report is None and "fault[" not in done.stderr, f"it is found by now\n{done.describe()}"
        return
    assert done.report is not None, done.describe()
    found = done.report["diagnosis"]["faults"]
    assert [one["code"] for one in found[:1]] == [fault], f"{json.dumps(found, indent=1)}\n{done.describe()}"
    place = found[0]["location"]
    assert place["file"] == str(program) and place["line"] in marked(program, fault), found[0]
    assert f"fault[{fault}]: " in done.stderr, done.describe()


@pytest.mark.parametrize("program", [pytest.param(path, id=path.stem) for path in PROGRAMS])
def test_healthy_twin_is_silent(program, warm, tmp_path):
    done = run(program, "healthy", tmp_path)
    assert (done.returncode, done.stderr, done.report) == (0, "", None), done.describe()


@pytest.mark.parametrize("program", [pytest.param(path, id=path.stem) for path in HEALTHY])
def test_what_is_near_to_a_fault_is_none(program, warm, tmp_path):
    done = run_numsan.run_watched_fork(program, options=OPTIONS, cwd=tmp_path)
    assert (done.returncode, done.stderr, done.report) == (0, "", None), done.describe()


def test_report_is_valid_and_says_the_same_later(warm, tmp_path):
    done = run(FOLDER / "mlp.py", "ND102", tmp_path)
    run_numsan.validate(done.report)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(done.report))
    text = diagnose(path)
    assert text.returncode == 1 and text.stderr == "", text
    assert text.stdout in done.stderr, f"{text.stdout}\n{done.describe()}"
    assert json.loads(diagnose(path, "--format", "json").stdout) == done.report["diagnosis"]["faults"]


def test_exit_status_says_whether_there_is_a_fault(warm, tmp_path):
    program = FOLDER / "mlp.py"
    healthy = run_numsan.run(program, options=OPTIONS, args=["healthy", "20"], cwd=tmp_path)
    assert healthy.returncode == 0 and healthy.report["diagnosis"]["faults"] == [], healthy.describe()
    text = diagnose(healthy.report_path)
    assert (text.returncode, text.stderr) == (0, ""), text
    assert text.stdout == "numsan: no training fault was recognised in 10 sampled steps\n"
    features = json.loads(diagnose(healthy.report_path, "--features").stdout)
    model = json.loads((run_numsan.REPO / "host" / "diagnosis" / "learned" / "model.json").read_text())
    assert list(features) == model["features"] and features["loss_places"] == 1, features
    names = [one["name"] for one in healthy.report["diagnosis"]["parameters"]]
    assert "model.first.weight" in names, names

    without = run_numsan.run(program, args=["healthy", "2"], cwd=tmp_path)
    assert "diagnosis" not in without.report, without.describe()
    for flags in [], ["--features"]:
        text = diagnose(without.report_path, *flags)
        assert text.returncode == 2 and "it has no training signals: `numsan run --diagnose 1`" in text.stderr, text
    text = diagnose(tmp_path / "none.json")
    assert text.returncode == 2 and "none.json" in text.stderr, text
    text = diagnose(healthy.report_path, "--format", "html")
    assert text.returncode == 2 and "expected text or json" in text.stderr, text


def test_steps_and_values_are_those_of_the_program(warm, tmp_path):
    program = tmp_path / "known.py"
    program.write_text("""
import torch
weight = torch.full((4, 4), 2.0, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.25)
for step in range(10):
    loss = (weight @ torch.ones(4, 1)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
    done = run_numsan.run(program, options=OPTIONS, cwd=tmp_path)
    measured = done.report["diagnosis"]
    assert measured["steps"] == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert measured["loss"][:3] == [32.0, 28.0, 24.0]
    assert measured["step_size"] == [0.25] * 9
    one, = measured["parameters"]
    assert one["gradient"] == [1.0] * 9 and one["weight"][:3] == [2.0, 1.75, 1.5]
    assert one["update"][:2] == pytest.approx([0.125, 0.25 / 1.75])
    assert (one["shape"], one["dtype"], one["name"]) == ([4, 4], "float32", "weight")


def test_recording_makes_the_same_diagnosis(warm, tmp_path):
    recording = tmp_path / "run.rec"
    done = run_numsan.run(FOLDER / "mlp.py", options={**OPTIONS, "record": recording}, args=["ND101", "12"],
                          cwd=tmp_path)
    assert [one["code"] for one in done.report["diagnosis"]["faults"]] == ["ND101"], done.describe()
    again = tmp_path / "again.json"
    replayed = subprocess.run([run_numsan.COMMAND, "replay", recording, "-o", again], capture_output=True, text=True)
    assert replayed.returncode == 0, replayed
    assert json.loads(again.read_text())["diagnosis"] == done.report["diagnosis"]
