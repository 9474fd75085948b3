"""However a program dies after a finding, the finding is on disk, complete, and the way of dying is its own."""
import json
import os
import signal
import subprocess
import time

import pytest

import run_numsan

# Its update is written by hand: an optimizer's first step imports torch's compiler, a second of each run.
PROGRAM = '''
import os, signal, sys, time
import torch

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.ones(3))
for step in range(4):
    x = torch.rand(8, 3) + 0.5
    if step == 2:
        x = -x
    loss = (x @ weight).log().mean()  # BUG
    weight.grad = None
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
ENDING
'''
WAIT = '''
open("marker", "w").close()
while True:
    time.sleep(1)
'''


def write(folder, ending):
    """The program with its last act."""
    program = folder / "victim.py"
    program.write_text(PROGRAM.replace("ENDING", ending))
    return program


def check_report(folder, program):
    """The report is whole, keeps to its schema and has the finding at its line."""
    text = (folder / "report.json").read_text()
    report = json.loads(text)
    run_numsan.validate(report)
    assert report["verdict"] in ("findings", "incomplete"), report["verdict"]
    assert report["findings"], "no finding in the report"
    first = report["findings"][0]
    assert (first["op"], first["step"]) == ("aten::log", 2), first["title"]
    assert first["location"]["line"] == run_numsan.marked_line(program)
    expected = ("report.json", "victim.py", "marker")
    leftovers = sorted(path.name for path in folder.iterdir() if path.name not in expected)
    assert leftovers == [], f"temporary files stay behind: {leftovers}"
    return report


@pytest.mark.parametrize("launcher, number", [
    pytest.param(launcher, number, id=f"{launcher}-{number.name}",
                 marks=[pytest.mark.nightly] if launcher == "run" and number != signal.SIGINT else [])
    for launcher in ("preload", "run") for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)])
def test_signal_after_a_finding(number, launcher, warm, tmp_path):
    program = write(tmp_path, WAIT)
    argv, environment = run_numsan.attached([run_numsan.PYTHON, program], launcher=launcher,
                                            report=str(tmp_path / "report.json"), env={})
    process = subprocess.Popen(argv, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        limit = time.monotonic() + 120
        while not (tmp_path / "marker").exists():
            assert process.poll() is None, f"died early: {process.communicate()[1]}"
            assert time.monotonic() < limit, "the program never reached its marker"
            time.sleep(0.02)
        os.killpg(process.pid, number)
        process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode in (-number, 128 + number), process.returncode
    check_report(tmp_path, program)


@pytest.mark.parametrize("ending, status", [
    ("os._exit(7)", 7),
    ("sys.exit(9)", 9),
    ("raise ValueError('own trouble')", 1),
    ("os.abort()", -signal.SIGABRT),
    ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
    ("os.execv('/bin/sh', ['sh', '-c', 'exit 4'])", 4),
], ids=["_exit", "exit", "exception", "abort", "segv", "exec"])
def test_own_ending_after_a_finding(ending, status, warm, tmp_path):
    program = write(tmp_path, ending)
    done = run_numsan.run(program, cwd=tmp_path)
    assert done.returncode == status, done.describe()
    if "ValueError" in ending:
        assert "ValueError: own trouble" in done.stderr, done.describe()
    check_report(tmp_path, program)


HEALTHY = """
import os, signal, sys, time
import torch

torch.ones(3).sum()
ENDING
"""


def left_behind(folder):
    """The report of a run that had found nothing; fails if it is not whole, or anything lies beside it."""
    report = json.loads((folder / "report.json").read_text())
    run_numsan.validate(report)
    assert report["findings"] == []
    leftovers = sorted(path.name for path in folder.iterdir() if path.name not in ("report.json", "victim.py"))
    assert leftovers == [], f"temporary files stay behind: {leftovers}"
    return report


@pytest.mark.parametrize("ending, status", [
    ("os._exit(7)", 7),
    ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ("os.abort()", -signal.SIGABRT),
], ids=["_exit", "kill", "term", "abort"])
def test_death_before_any_finding_is_no_health(ending, status, warm, tmp_path):
    (tmp_path / "victim.py").write_text(HEALTHY.replace("ENDING", ending))
    done = run_numsan.run(tmp_path / "victim.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (status, ""), done.describe()
    report = left_behind(tmp_path)
    assert report["verdict"] == "incomplete" and report["run"]["ended"] is None, report
    assert any("had not ended" in spot for spot in report["coverage"]["blind_spots"]), report["coverage"]


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "raise ValueError('own trouble')"],
                         ids=["end", "exit", "exception"])
def test_a_run_that_ends_is_told_whole(ending, warm, tmp_path):
    (tmp_path / "victim.py").write_text(HEALTHY.replace("ENDING", ending))
    run_numsan.run(tmp_path / "victim.py", cwd=tmp_path)
    report = left_behind(tmp_path)
    assert report["verdict"] == "clean" and report["run"]["ended"] is not None, report
    assert report["coverage"]["blind_spots"] == [], report["coverage"]


def test_a_folder_that_cannot_be_written_is_no_news_at_the_start(warm, tmp_path):
    """Who dies before the end has not been told of it; who ends is told once."""
    for ending, lines in (("os._exit(7)", 0), ("", 1)):
        (tmp_path / "victim.py").write_text(HEALTHY.replace("ENDING", ending))
        done = run_numsan.run(tmp_path / "victim.py", cwd=tmp_path, options={"report": "/proc/report.json"})
        assert done.stderr.count("\n") == lines, done.describe()
        assert lines == 0 or "the report was not written" in done.stderr, done.describe()


@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)"], ids=["_exit", "exit"])
def test_a_forked_child_without_a_finding_leaves_no_report(ending, warm, tmp_path):
    """Also one that loads torch itself, in a process that had not."""
    for first in ("import torch", ""):
        (tmp_path / "victim.py").write_text(f"""
{first}
import os, sys
child = os.fork()
if child == 0:
    import torch
    torch.ones(3).sum()
    {ending}
os.waitpid(child, 0)
""")
        done = run_numsan.run(tmp_path / "victim.py", cwd=tmp_path, options={"report": "report-%p.json"})
        assert (done.returncode, done.stderr) == (0, ""), done.describe()
        verdicts = [json.loads(path.read_text())["verdict"] for path in tmp_path.glob("report-*.json")]
        assert "incomplete" not in verdicts, verdicts
        for path in tmp_path.glob("report-*.json"):
            path.unlink()


def test_child_process_finding(warm, tmp_path):
    child = write(tmp_path, "os._exit(0)")
    parent = tmp_path / "parent.py"
    parent.write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'victim.py'], check=True)\n")
    done = run_numsan.run(parent, cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    parent.unlink()
    check_report(tmp_path, child)
