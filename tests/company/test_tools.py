"""Debuggers, profilers and tracers beside numsan: what they see of a program is what they see without it."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

import beside
import run_numsan

PLAIN = beside.PROGRAMS / "plain.py"


def run_both(command, folder):
    """(without numsan, with it) of a command line; `{}` in it is a file for what the tool writes."""
    files = [folder / "plain", folder / "watched"]
    runs = [[str(part).format(file) for part in command] for file in files]
    return (run_numsan.run_plain_command(runs[0], cwd=folder, timeout=beside.TIMEOUT),
            run_numsan.run_command(runs[1], cwd=folder, timeout=beside.TIMEOUT)), files


def test_trace_functions_and_pdb(warm, tmp_path):
    plain, _ = beside.check_forked("traced.py", tmp_path)
    assert "trace line " in plain.stdout and "profile call " in plain.stdout, plain.describe()


def test_torch_profiler_and_cprofile(warm, tmp_path):
    plain, _ = beside.check_forked("profiled.py", tmp_path, clean_stderr=False)
    assert "aten::addmm 3 " in plain.stdout and "my step 3 " in plain.stdout, plain.describe()


def test_coverage(warm, tmp_path):
    command = [run_numsan.PYTHON, "-m", "coverage", "run", "--data-file={}", f"--include={beside.PROGRAMS}/*", PLAIN]
    (plain, watched), files = run_both(command, tmp_path)
    beside.check(plain, watched)
    seen = []
    for file in files:
        subprocess.run([run_numsan.PYTHON, "-m", "coverage", "json", "-q", f"--data-file={file}", "-o", f"{file}.json"],
                       check=True, cwd=tmp_path, timeout=beside.TIMEOUT)
        seen.append({name: part["executed_lines"] for name, part in
                     json.loads(file.with_suffix(".json").read_text())["files"].items()})
    assert seen[0] == seen[1] and any("small_training" in name for name in seen[0]), seen


@pytest.mark.nightly
def test_memray(warm, tmp_path):
    (plain, watched), _ = run_both([run_numsan.PYTHON, beside.PROGRAMS / "memory_traced.py", "{}"], tmp_path)
    beside.check(plain, watched)
    assert "memray True\n" in plain.stdout, plain.describe()


@pytest.mark.nightly
def test_debugpy(warm, tmp_path):
    """A debugger that listens, and to which nobody talks."""
    command = [run_numsan.PYTHON, "-Xfrozen_modules=off", "-m", "debugpy", "--listen", "127.0.0.1:0", PLAIN]
    (plain, watched), _ = run_both(command, tmp_path)
    beside.check(plain, watched, clean_stderr=False)


@pytest.mark.nightly
def test_py_spy(warm, tmp_path):
    """It stops the process from outside, many times a second, and reads its frames, as numsan does from inside."""
    spy = program_of_package("py-spy")
    command = [spy, "record", "--rate", "20", "--format", "raw", "--output", "{}", "--", run_numsan.PYTHON, PLAIN]
    (plain, watched), files = run_both(command, tmp_path)
    if plain.returncode != 0 and re.search("ermission", plain.stderr):
        pytest.skip(f"processes may not be traced here: {plain.stderr.strip().splitlines()[-1]}")
    for run in (plain, watched):  # how far it lags behind is of py-spy, and of the machine
        run.stdout = "".join(line for line in run.stdout.splitlines(True) if line.strip() and "py-spy>" not in line)
    beside.check(plain, watched, clean_stderr=False)
    assert all("plain.py" in file.read_text() for file in files), [file.read_text()[-500:] for file in files]


def program_of_package(name):
    """The program of a package, in the folder of the tests' own Python."""
    path = pathlib.Path(run_numsan.PYTHON).parent / name
    return path if path.exists() else pathlib.Path(sys.executable).parent / name
