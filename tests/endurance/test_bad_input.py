"""Bad options, unwritable places, no compiler, a damaged cache: the program runs on, one line says what is wrong."""
import os
import pathlib
import shutil
import subprocess

import pytest

import run_numsan

HEALTHY = "import torch\nprint(torch.ones(3).sum().item())\n"
BUG = "import torch\nw = torch.nn.Parameter(torch.ones(2))\n(-w).log().sum().backward()\nprint('done')\n"
# Wraps what numsan wraps, as profilers and allocators do.
OTHER_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
void* dlopen(const char* file, int mode) {
    return ((void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen"))(file, mode);
}
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* p) {
    return ((int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))
            dlsym(RTLD_NEXT, "pthread_create"))(t, a, f, p);
}
"""
# Fills the disk that the report lies on after the first finding, then has a second one.
FILLS_THE_DISK = """
import os, sys
import torch
def bug(op):
    w = torch.nn.Parameter(torch.ones(2))
    op(-w).sum().backward()
bug(torch.log)
with open("first.json", "w") as copy:
    copy.write(open(sys.argv[1] + "/report.json").read())
with open(sys.argv[1] + "/filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(512))
    except OSError as error:
        print(error.strerror)
bug(torch.sqrt)
print("done")
"""


@pytest.fixture
def healthy(tmp_path):
    program = tmp_path / "healthy.py"
    program.write_text(HEALTHY)
    return program


@pytest.fixture
def buggy(tmp_path):
    program = tmp_path / "buggy.py"
    program.write_text(BUG)
    return program


def numsan_lines(text):
    """What numsan itself said."""
    return [line for line in text.splitlines() if "numsan" in line]


def assert_ran(done, stdout="3.0\n"):
    """The program did what it does without numsan."""
    assert (done.returncode, done.stdout) == (0, stdout), done.describe()


@pytest.mark.parametrize("options, words", [
    ({"teir": "full"}, ["teir", "tier"]),
    ({"tier": "fulll"}, ["tier", "fulll", "full"]),
    pytest.param({"budget": "lots"}, ["budget", "lots"], marks=pytest.mark.nightly),
    pytest.param({"halt": "maybe"}, ["halt", "maybe"], marks=pytest.mark.nightly),
    pytest.param({"max_findings": "-3"}, ["max_findings", "-3"], marks=pytest.mark.nightly),
    ({"kernels": "kernels.toml"}, ["kernels=PATH has no effect: it is for CUDA programs without torch"]),
], ids=["unknown", "value", "number", "switch", "negative", "no effect"])
def test_bad_option_is_named_and_the_run_goes_on(options, words, warm, healthy, tmp_path):
    done = run_numsan.run(healthy, options=options, cwd=tmp_path)
    assert_ran(done)
    lines = numsan_lines(done.stderr)
    assert len(lines) == 1 and all(word in lines[0] for word in words), done.describe()


# What an option may be is parsed in unit tests and by a fuzzer; here, that the program runs on.
@pytest.mark.parametrize("text", ["tier", "\u00e9=1", *(pytest.param(text, marks=pytest.mark.nightly) for text in (
    "=full", "tier==full", ":::", "%", "tier=full:report", "a" * 5000))])
def test_malformed_options_do_no_harm(text, warm, healthy, tmp_path):
    argv, environment = run_numsan.attached([run_numsan.PYTHON, healthy])
    environment["NUMSAN_OPTIONS"] = text
    watched = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (watched.returncode, watched.stdout) == (0, "3.0\n"), watched.stderr


@pytest.mark.parametrize("flags", [["--teir", "full"], ["--tier", "fulll"], ["--budget", "lots"]])
def test_launcher_refuses_bad_options(flags, build, tmp_path):
    marker = tmp_path / "started"
    done = subprocess.run([run_numsan.COMMAND, "run", *flags, "--", "touch", marker], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2 and done.stdout == "" and done.stderr, done
    assert not marker.exists(), "it started the program"


@pytest.mark.parametrize("command, status", [(["./missing"], 127), (["/"], 126), (["sh", "-c", "exit 3"], 3),
                                             (["sh", "-c", "kill -9 $$"], 137)])
def test_launcher_exit_status_is_that_of_a_shell(command, status, build, tmp_path):
    done = subprocess.run([run_numsan.COMMAND, "run", "--", *command], cwd=tmp_path, capture_output=True, timeout=60)
    killed = -9 if status == 137 else status
    assert done.returncode in (status, killed), done


@pytest.mark.parametrize("place", ["/proc/report.json", "missing/folder/report.json", "/dev/full/report.json"])
def test_report_that_cannot_be_written(place, warm, buggy, tmp_path):
    done = run_numsan.run(buggy, options={"report": place}, cwd=tmp_path)
    assert_ran(done, "done\n")
    assert "error[NS" in done.stderr, done.describe()
    assert any("report" in line and pathlib.Path(place).name in line for line in numsan_lines(done.stderr)), \
        done.describe()


def test_disk_that_is_full(warm, tmp_path, buggy):
    """A file size limit of 0 makes every write fail as a full disk does; SIGXFSZ is ignored, as Python does anyway."""
    limited = ["sh", "-c", "ulimit -f 0; exec \"$@\"", "sh", run_numsan.PYTHON, str(buggy)]
    done = run_numsan.run_command(limited, cwd=tmp_path)
    assert_ran(done, "done\n")
    assert not (tmp_path / "report.json").exists(), "a torn report is worse than none"
    assert "error[NS" in done.stderr, done.describe()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True,
                             text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_disk_that_fills_up_between_two_rewrites(warm, small_disk, tmp_path):
    """The report of the first finding stays as it was, whole; one line says that the second's is missing."""
    program = tmp_path / "fills.py"
    program.write_text(FILLS_THE_DISK)
    argv, environment = run_numsan.attached([run_numsan.PYTHON, program, small_disk], report=small_disk / "report.json")
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "No space left on device\ndone\n"), done.stderr
    assert (small_disk / "report.json").read_text() == (tmp_path / "first.json").read_text()
    report = run_numsan.read_report(small_disk / "report.json")
    run_numsan.validate(report)
    assert [found["op"] for found in report["findings"]] == ["aten::log"], done.stderr
    assert done.stderr.count("error[NS") == 2, done.stderr
    said = [line for line in numsan_lines(done.stderr) if "was not written" in line]
    assert len(said) == 1 and "No space left on device" in said[0], done.stderr
    assert sorted(path.name for path in small_disk.iterdir()) == ["filler", "report.json"]


def test_no_compiler_and_no_cache(warm, healthy, tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    environment = {"PATH": str(empty), "CXX": "", "CC": "", "NUMSAN_CACHE": str(tmp_path / "cache")}
    done = run_numsan.run(healthy, cwd=tmp_path, env=environment)
    assert_ran(done)
    said = numsan_lines(done.stderr)
    assert len(said) == 1 and "compiler" in said[0], done.describe()


@pytest.fixture
def quick_compiler(warm, tmp_path):
    """A compiler that is done at once: for the adapter it hands out the one that was built before."""
    built = max(run_numsan.CACHE.glob("libnumsan_torch-*.so"), key=lambda path: path.stat().st_mtime)
    script = tmp_path / "compiler"
    script.write_text(f"""#!/bin/sh
before=
for argument in "$@"; do
    if [ "$before" = -o ]; then exec cp {built} "$argument"; fi
    before=$argument
done
exec c++ "$@"
""")
    script.chmod(0o755)
    return {"CXX": str(script)}


@pytest.mark.parametrize("damage", [
    "truncate", *(pytest.param(how, marks=pytest.mark.nightly) for how in ("garbage", "empty"))])
def test_damaged_adapter_cache(damage, quick_compiler, buggy, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(run_numsan.CACHE, cache, ignore=shutil.ignore_patterns("inductor", "triton"))
    libraries = sorted(cache.rglob("*.so"))
    assert libraries, "the warm cache holds no adapter"
    for library in libraries:
        data = library.read_bytes()
        library.write_bytes({"truncate": data[:len(data) // 3], "garbage": os.urandom(4096), "empty": b""}[damage])
    done = run_numsan.run(buggy, cwd=tmp_path, env={"NUMSAN_CACHE": str(cache), **quick_compiler}, timeout=300)
    assert_ran(done, "done\n")
    assert done.findings or len(numsan_lines(done.stderr)) == 1, f"neither rebuilt nor said why\n{done.describe()}"


def test_unwritable_cache(quick_compiler, buggy, tmp_path):
    place = tmp_path / "cache"
    place.write_text("a file where a folder is wanted")
    done = run_numsan.run(buggy, cwd=tmp_path, env={"NUMSAN_CACHE": str(place), **quick_compiler}, timeout=300)
    assert_ran(done, "done\n")
    assert done.findings or len(numsan_lines(done.stderr)) == 1, done.describe()


def test_numsan_under_numsan(warm, buggy, tmp_path):
    command = [str(run_numsan.COMMAND), "run", "--report", str(tmp_path / "report.json"), "--", run_numsan.PYTHON,
               str(buggy)]
    done = run_numsan.run_command(command, cwd=tmp_path)
    assert_ran(done, "done\n")
    assert len(done.findings) == 1, done.describe()


def test_beside_another_preloaded_library(warm, buggy, tmp_path):
    source = tmp_path / "other.c"
    source.write_text(OTHER_LIBRARY)
    library = tmp_path / "libother.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    done = run_numsan.run(buggy, cwd=tmp_path, env={"LD_PRELOAD": str(library)})
    assert_ran(done, "done\n")
    assert len(done.findings) == 1, done.describe()
    argv, environment = run_numsan.attached([run_numsan.PYTHON, buggy], report=tmp_path / "behind.json")
    environment["LD_PRELOAD"] = f"{library}:{run_numsan.LIBRARY}"
    behind = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (behind.returncode, behind.stdout) == (0, "done\n"), behind.stderr
    assert len(run_numsan.read_report(tmp_path / "behind.json")["findings"]) == 1, behind.stderr
    launched = run_numsan.run(buggy, launcher="run", cwd=tmp_path, env={"LD_PRELOAD": str(library)})
    assert_ran(launched, "done\n")
    assert len(launched.findings) == 1, launched.describe()
