"""Processes started by fork, spawn and forkserver are watched like the one that started them."""
import pathlib

import pytest

import run_numsan
from nightly import in_ci

HERE = pathlib.Path(__file__).resolve().parent
METHODS = ["fork", "spawn", "forkserver"]
FORK, NEW = in_ci(METHODS, "fork"), in_ci(METHODS, "fork", "spawn")
TRAIN, LOADER = HERE / "start_methods" / "train.py", HERE / "loader_worker"


def run(program, folder, *args):
    """One run and the reports of all its processes that loaded torch."""
    done = run_numsan.run(program, args=args, options={"report": folder / "report-%p.json"}, cwd=folder)
    reports = [run_numsan.read_report(path) for path in folder.glob("report-*.json")]
    assert done.returncode == 0 and reports and None not in reports, done.describe()
    for report in reports:
        run_numsan.validate(report)
    return done, reports


def the_finding(reports, place, done):
    """The report with the only finding of a run; fails unless that is at `place`, a file and a line."""
    blamed = [report for report in reports if report["findings"]]
    assert len(blamed) == 1 and len(blamed[0]["findings"]) == 1, (len(reports), done.describe())
    seen = blamed[0]["findings"][0]["location"]
    assert seen is not None, done.describe()
    assert (seen["file"], seen["line"]) == (str(place[0]), place[1]), done.describe()
    assert f"{place[0].name}:{place[1]}" in done.stderr, done.describe()
    return blamed[0]


@pytest.mark.parametrize("method", METHODS)
def test_bug_in_a_started_process(method, warm, tmp_path):
    done, reports = run(TRAIN, tmp_path, method, "-9")
    blamed = the_finding(reports, (TRAIN, run_numsan.marked_line(TRAIN)), done)
    assert "0 nan\n" in done.stdout, done.describe()
    found = blamed["findings"][0]
    assert (found["op"], found["phase"], found["step"]) == ("aten::log", "forward", 0), done.describe()
    assert f"pid {blamed['run']['pid']}\n" in done.stdout, "the finding is of another process than the one that trains"


@pytest.mark.parametrize("method", FORK)
def test_healthy_started_process(method, warm, tmp_path):
    done, reports = run(TRAIN, tmp_path, method, "1")
    assert done.stderr == "" and [report["verdict"] for report in reports] == ["clean"] * len(reports), done.describe()
    assert "4 " in done.stdout and "nan" not in done.stdout, done.describe()


@pytest.mark.parametrize("method", NEW)
def test_bug_in_a_loader_worker(method, warm, tmp_path):
    """A forked worker shares numsan with the main process: its line. Any other: the line where its batch arrives."""
    program = LOADER / "victim.py"
    done, reports = run(program, tmp_path, method)
    line = run_numsan.marked_line(program, "# BUG" if method == "fork" else "# ARRIVES")
    found = the_finding(reports, (program, line), done)["findings"][0]
    op = "aten::div" if method == "fork" else "external"
    assert (found["op"], found["phase"], found["step"]) == (op, "data", 4), done.describe()


@pytest.mark.parametrize("method", FORK)
def test_healthy_loader_worker(method, warm, tmp_path):
    done, reports = run(LOADER / "twin.py", tmp_path, method)
    assert done.stderr == "" and [report["verdict"] for report in reports] == ["clean"] * len(reports), done.describe()
