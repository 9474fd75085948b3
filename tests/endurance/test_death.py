"""However a program dies after a finding, the finding is on disk, complete, and the way of dying is its own."""
import json
import os
import signal
import subprocess
import time

import pytest

import run_numsan

PROGRAM = '''
import os, signal, sys, time
import torch

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(4):
    x = torch.rand(8, 3) + 0.5
    if step == 2:
        x = -x
    loss = (x @ weight).log().mean()  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("launcher", ["preload", "run"])
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


def test_child_process_finding(warm, tmp_path):
    child = write(tmp_path, "os._exit(0)")
    parent = tmp_path / "parent.py"
    parent.write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'victim.py'], check=True)\n")
    done = run_numsan.run(parent, cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    parent.unlink()
    check_report(tmp_path, child)
