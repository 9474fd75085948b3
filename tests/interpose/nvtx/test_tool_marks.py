"""Findings as marks in a tool that has NVTX in the process, as nsys does."""
import pathlib
import subprocess
import sysconfig

import pytest

import run_numsan

HERE = pathlib.Path(__file__).parent

PROGRAM = """
import sys
import torch

weight = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([weight], lr=0.1)
for number in range(4):
    torch.cuda.nvtx.range_push("train") if number == 0 else None
    value = -1.0 if number >= int(sys.argv[1]) else 1.0
    loss = (weight * value).log().sum()  # BUG
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def headers():
    doctor = subprocess.run([run_numsan.COMMAND, "doctor"], capture_output=True, text=True, check=False,
                            env=run_numsan.plain_environment({"NVTX_INJECTION64_PATH": "/a/tool"}))
    if "it is shown no findings" in doctor.stdout:
        pytest.skip("this build has no marks: it was made without nvtx3/nvToolsExt.h")
    packages = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    header = "include/nvtx3/nvToolsExt.h"
    found = [*packages.glob(f"*/{header}"), *pathlib.Path("/usr/local").glob(f"cuda*/{header}")]
    if not found:
        pytest.skip("nvtx3/nvToolsExt.h was not found")
    return found[0].parent.parent


@pytest.fixture
def tool(warm, tmp_path):
    library = tmp_path / "libtool.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden",
                    "-isystem", headers(), "-o", library, HERE / "marking_tool.c", "-ldl"], check=True)
    log = tmp_path / "tool.log"
    log.touch()
    return log, {"NVTX_INJECTION64_PATH": str(library), "MARKING_TOOL_LOG": str(log)}


def run(tool, tmp_path, first_bad):
    log, env = tool
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = run_numsan.run(path, args=[str(first_bad)], env=env, cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    lines = log.read_text().splitlines()
    assert "push - 0 0 train" in lines, "the tool has the program's ranges"
    return path, done, [line for line in lines if not line.startswith("push")]


def test_new_findings_are_marks_in_the_domain_numsan(tool, tmp_path):
    path, done, lines = run(tool, tmp_path, 2)
    assert len(done.findings) == 1, done.describe()
    found = done.findings[0]
    number = found["code"].removeprefix("NS")
    assert lines == [
        "domain - 0 0 numsan",
        f"category numsan {number} 0 {found['code']}",
        f"mark numsan {number} 2 error[{found['code']}]: {found['title']}, "
        f"at {path}:{run_numsan.marked_line(path)} in <module>, step 2, op {found['seq']} (aten::log)"], done.describe()


def test_healthy_program_has_neither_marks_nor_a_domain(tool, tmp_path):
    _, done, lines = run(tool, tmp_path, 9)
    assert done.findings == [] and lines == [], done.describe()


FORKS = """
import os
import torch

torch.cuda.nvtx.range_push("train")
child = os.fork()
if child == 0:
    torch.tensor([1.0], requires_grad=True).mul(-1).log().backward()
else:
    assert os.waitpid(child, 0) == (child, 0)
"""


def test_forked_child_does_not_call_the_tool(tool, tmp_path):
    """It may find the tool's locks held."""
    log, env = tool
    path = tmp_path / "program.py"
    path.write_text(FORKS)
    done = run_numsan.run(path, env=env, cwd=tmp_path)
    assert done.returncode == 0 and "error[NS101]" in done.stderr, done.describe()
    assert log.read_text().splitlines() == ["push - 0 0 train"], done.describe()


AT_EXIT = """
import atexit
import sys
atexit.register(lambda: use())
import torch


def use():
    global kept
    kept = torch.log(torch.full((3,), -1.0))


torch.cuda.nvtx.range_push("train")
"""


def test_tool_is_not_called_once_the_process_ends(tool, tmp_path):
    """What is decided then comes after the tool's destructors."""
    log, env = tool
    path = tmp_path / "program.py"
    path.write_text(AT_EXIT)
    done = run_numsan.run(path, options={"escape": "any"}, env=env, cwd=tmp_path)
    assert done.returncode == 0 and len(done.findings) == 1, done.describe()
    assert log.read_text().splitlines() == ["push - 0 0 train"], done.describe()
