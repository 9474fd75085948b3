"""Every Python found here, one minor version each: how its frames are read, and the lines that numsan names.

Looked for as python3.N and python3.Nt on the PATH and among the paths of NUMSAN_PYTHONS, which are separated by colons.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import run_numsan

HERE = pathlib.Path(__file__).resolve().parent
pytestmark = pytest.mark.xdist_group("frames")  # what reads frames is compiled for one worker
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t"]
QUESTION = """import importlib.util, sys
print("%d.%d" % sys.version_info[:2] + ("t" if "t" in getattr(sys, "abiflags", "") else ""))
print(importlib.util.find_spec("torch") is not None)"""


def ask(python):
    """(version as in VERSIONS, has torch), nothing for a program that is no Python."""
    done = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, timeout=60)
    return tuple(done.stdout.split()) if done.returncode == 0 else ("", "")


@pytest.fixture(scope="session")
def interpreters():
    found = {}
    named = [path for path in os.environ.get("NUMSAN_PYTHONS", "").split(":") if path]
    for path in [*named, run_numsan.PYTHON, *filter(None, (shutil.which(f"python{version}") for version in VERSIONS))]:
        version, torch = ask(path)
        if version not in found or (found[version][1] != "True" and torch == "True"):
            found[version] = path, torch
    return found


@pytest.fixture(params=VERSIONS)
def python(request, interpreters):
    """(path, whether it has torch)"""
    if request.param not in interpreters:
        pytest.skip(f"no python{request.param} on the PATH or in NUMSAN_PYTHONS")
    path, torch = interpreters[request.param]
    return request.param, path, torch == "True"


@pytest.mark.parametrize("mode", ["raw", "api"])
def test_frames_are_those_of_traceback(python, mode, stacks_library):
    version, path, _ = python
    done = subprocess.run([path, HERE / "walk.py", stacks_library, mode], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    got = done.stdout.split("|")[0]
    assert got == ("api" if mode == "api" or version.endswith("t") else "raw"), done.stdout


def test_a_layout_that_does_not_match_is_not_used(python, library_with_wrong_layouts):
    version, path, _ = python
    done = subprocess.run([path, HERE / "walk.py", library_with_wrong_layouts, "raw"], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr  # its frames are right all the same
    why = "free-threaded python" if version.endswith("t") else \
          f"frame layout of python {version} does not match the interpreter"
    assert done.stdout.splitlines()[0] == f"api|{why}", done.stdout


def test_no_wrong_layout_is_believed(python, stacks_library):
    _, path, _ = python
    done = subprocess.run([path, HERE / "wrong_layouts.py", stacks_library], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_look_ups_while_threads_begin_and_end(python, stacks_library):
    """A thread makes its state without the interpreter's lock, and another one's look-up goes through all states."""
    version, path, _ = python
    done = subprocess.run([path, HERE / "many_look_ups.py", stacks_library], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, (done.returncode, done.stdout + done.stderr)
    # One that waits for a second is given up; without the interpreter's lock nothing is looked up.
    assert (int(done.stdout) > 0) != version.endswith("t"), done.stdout


def test_forks_while_threads_of_look_ups_begin(python, stacks_library):
    """Python 3.11's list of threads has a lock that a child does not get back: no state begins at a fork."""
    version, path, _ = python
    if version.endswith("t"):
        pytest.skip("without the interpreter's lock nothing is looked up")
    done = subprocess.run([path, HERE / "forks_beside_look_ups.py", stacks_library], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, (done.returncode, done.stdout + done.stderr)
    assert all(int(number) > 0 for number in done.stdout.split()), done.stdout


def test_a_look_up_whose_thread_python_ends(python, stacks_library):
    """Linked as the core is (tests/layers/test_binaries.py): with a libgcc of its own the program would abort."""
    version, path, _ = python
    if version.endswith("t"):
        pytest.skip("without the interpreter's lock nothing is looked up")
    done = subprocess.run([path, HERE / "ended_look_up.py", stacks_library], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout + done.stderr)


def expected_places(version):
    """(line, function) of every marked line; comprehensions are part of their function since 3.12, and code has
    qualified names since 3.11."""
    minor = int(re.match(r"3\.(\d+)", version)[1])
    places = set()
    for number, line in enumerate((HERE / "places.py").read_text().splitlines(), 1):
        mark = re.search(r"# place: (\S+)$", line)
        if mark is None:
            continue
        name = mark[1]
        if minor >= 12 and name in ("<listcomp>", "<dictcomp>"):
            name = "<module>"
        places.add((number, name.rsplit(".", 1)[-1] if minor == 10 else name))
    return places


def torch_of(python):
    version, path, has_torch = python
    if not has_torch:
        pytest.skip(f"{path} has no torch")
    return version, path


def test_every_place_is_named(python, build, tmp_path):
    version, path = torch_of(python)
    program = str(HERE / "places.py")
    watched = run_numsan.run_command([path, program], cwd=tmp_path, timeout=900)  # may build the adapter
    assert watched.returncode == 0, watched.describe()
    seen = [(place["file"], place["line"], place["function"]) for place in (f["location"] for f in watched.findings)]
    named = {(line, function) for file, line, function in seen if file == program}
    assert named == expected_places(version), watched.describe()
    assert [place for place in seen if place[0] != program] == [("<made here>", 2, "<module>")], watched.describe()
    assert [f["module"] for f in watched.findings if f["module"]] == ["layer"], watched.describe()


FORKED = "import multiprocessing, runpy, sys; multiprocessing.set_start_method('fork'); " \
         "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def test_forked_worker_is_named_and_its_twin_is_not(python, build, tmp_path):
    _, path = torch_of(python)
    folder = HERE.parents[1] / "programs" / "loader_worker"
    for program, lines in (("victim.py", [run_numsan.marked_line(folder / "victim.py")]), ("twin.py", [])):
        watched = run_numsan.run_command([path, "-c", FORKED, str(folder / program)], cwd=tmp_path, timeout=300)
        assert watched.returncode == 0, watched.describe()
        assert [f["location"]["line"] for f in watched.findings] == lines, watched.describe()
