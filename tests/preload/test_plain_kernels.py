"""Kernels of CUDA programs without torch, on the fake driver: what their names say they write is looked at, and the
program runs as it does without numsan."""
import pathlib
import re
import sys

import pytest

import run_numsan
from cuda_programs import FAKES, both, cc, environment

SOURCE = pathlib.Path(__file__).with_name("plain_kernels.c")


@pytest.fixture(scope="session")
def kernels(cupti, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    return cc(folder / "kernels", SOURCE.read_text(), "-g", "-rdynamic", "-pthread", f"-L{FAKES}", "-l:libcuda.so.1",
              "-lm")


def line_of(text):
    """Of the first line of the program with this text in it."""
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def found(done):
    return [(f["title"], f["location"]["line"]) for f in done.report["findings"]]


@pytest.mark.parametrize("way", ["healthy", "root of positive", "grow", "train", "paths", "missing values", "misses",
                                 "heat", "threads"])
def test_what_is_meant_or_was_there_before_is_no_finding(way, kernels, tmp_path):
    done = both([kernels, way], tmp_path)
    assert done.stderr == "" and done.report["findings"] == [], done.describe()
    assert done.report["verdict"] == "clean" and done.report["coverage"]["scanned"] > 0, done.describe()


DIVIDED = """\
warning[NS115]: first infinity of this run: the kernel `divide<<<>>>` made bad values out of finite ones in 256 of 256 \
values
  --> FILE:LINE in launch
   |
LINE |     TRY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0));
   |
   = seen:     output[0] float32[256]  nan 0  +inf 256  -inf 0  first at [0]
   = inputs:   input[0]  float32[256]  overwritten before it could be looked at
               input[1]  float32[256]  1                                               healthy
               input[2]  float32[256]  0                                               256 zeros
   = when:     step 0, forward, op 7 (divide<<<>>>)
   = kernel:   divide(float*, float const*, float const*, int), launch 5, grid 1x1x1, block 1x1x1, stream 0x0, NUMBER
   = escaped:  to the host program
   = category: U not enough evidence (0.23); next N1 invalid data (0.09), N2 unsafe operation (0.09)
   = because:  every operand that was read was finite, the largest 1; what the kernel computes is its own
help: guard in `divide<<<>>>` what is divided by, and what goes into roots, logarithms and powers, at the element that \
is named
"""


def test_the_kernel_that_was_first_and_its_line(kernels, tmp_path):
    done = both([kernels, "divide"], tmp_path)
    text = re.sub(r"correlation \d+", "NUMBER", done.stderr.replace(str(kernels.with_suffix(".c")), "FILE"))
    line = line_of("TRY(cuLaunchKernel(")
    text = text.replace(f"FILE:{line} ", "FILE:LINE ").replace(f"\n{line} |", "\nLINE |")
    assert text.startswith(DIVIDED), done.describe()
    callers = [frame["line"] for frame in done.report["findings"][0]["stack"]]
    assert callers[:2] == [line, line_of('if (IS("divide") || ')], "the lines of the program, innermost first"


@pytest.mark.parametrize("way, kind, kernel, did", [
    ("zero by zero", "NaN", "divide", "made bad values out of finite ones in 256 of 256 values"),
    ("root", "NaN", "root", "made bad values in 3 of 256 values"),
    ("grow too fast", "infinity", "grow", "made bad values in 253 of 256 values"),
    ("train too fast", "infinity", "math::update<float>", "overflowed in 251 of 256 values"),
    ("heat too fast", "infinity", "heat::step<double>", "overflowed in 20 of 256 values"),
    ("part of a buffer", "infinity", "divide", "made bad values out of finite ones in 256 of 256 values"),
    ("one thread of two", "infinity", "divide", "made bad values out of finite ones in 256 of 256 values"),
    ("fork", "infinity", "divide", "made bad values out of finite ones in 256 of 256 values"),
])
def test_a_bug(way, kind, kernel, did, kernels, tmp_path):
    done = both([kernels, way], tmp_path)
    title = f"first {kind} of this run: the kernel `{kernel}<<<>>>` {did}"
    assert found(done) == [(title, line_of("TRY(cuLaunchKernel("))], done.describe()
    assert f"{kernel}(" in done.report["findings"][0]["kernel"], done.describe()


def test_values_that_unseen_kernels_wrote_are_nobody_elses(kernels, tmp_path):
    for way in ("opaque", "opaque in place"):
        done = both([kernels, way], tmp_path)
        assert done.report["findings"] == [] and done.report["verdict"] == "incomplete", done.describe()
        assert done.stderr == ("numsan: incomplete: kernels whose names and debug information (-g) do not say what "
                               "they write: 1 launch not looked at, most of `opaque<<<>>>`\n"), done.describe()
    done = both([kernels, "opaque afterwards"], tmp_path)
    assert [f["op"] for f in done.report["findings"]] == ["divide<<<>>>"], "what was found before it stays"


def test_a_kernel_that_a_user_describes_is_looked_at(kernels, tmp_path):
    manifest = tmp_path / "kernels.toml"
    manifest.write_text('[[kernel]]\nsymbol = "opaque"\nwrites = [{ argument = 0, type = "float32" }]\n')
    done = both([kernels, "opaque"], tmp_path, options={"kernels": manifest})
    assert found(done) == [("first NaN of this run: the kernel `opaque<<<>>>` made bad values in 1 of 256 values",
                            line_of("TRY(cuLaunchKernel("))], done.describe()
    assert done.report["verdict"] == "findings", done.describe()
    manifest.write_text('[[kernel]]\nsymbol = "opaque"\nwrites = [{ argument = 0, type = "int" }]\n')
    done = both([kernels, "opaque"], tmp_path, options={"kernels": manifest})
    said = f"numsan: kernels: {manifest}:3:34: 'type' is none of float64, "
    assert done.stderr.startswith(said), done.describe()


def test_the_file_that_the_documents_show_is_read(kernels, tmp_path):
    tomllib = pytest.importorskip("tomllib", reason="Python has it since 3.11")
    text = (run_numsan.REPO / "docs/cuda.md").read_text()
    shown = re.search(r"^```toml\n(.*?)^```$", text, re.M | re.S)[1]
    assert tomllib.loads(shown)["kernel"][0]["symbol"] == "fused_update", "it is TOML"
    (tmp_path / "kernels.toml").write_text(shown)
    done = both([kernels, "healthy"], tmp_path, options={"kernels": "kernels.toml"})
    assert done.stderr == "" and done.report["verdict"] == "clean", done.describe()
    unmet = "kernels: no kernel was launched that is 'fused_update'"
    assert unmet in done.report["coverage"]["blind_spots"], done.describe()


def test_a_file_of_kernels_without_raw_has_no_effect(kernels, tmp_path):
    done = run_numsan.run_command([str(kernels), "healthy"], options={"kernels": "k.toml", "cupti": "on"},
                                  cwd=tmp_path, env=environment())
    assert "numsan: kernels=PATH has no effect without raw=1: no kernel is looked at\n" in done.stderr, done.describe()


def test_a_graph_is_not_looked_at(kernels, tmp_path):
    done = both([kernels, "graph"], tmp_path)
    assert done.stderr == ("numsan: incomplete: kernels in CUDA graphs: 1 launch not looked at when the graph was "
                           "made, nor when it ran\n"), done.describe()


def test_the_run_may_fail_by_what_is_found(kernels, tmp_path):
    run = dict(options={"raw": "1", "fail_on": "warning"}, cwd=tmp_path, env=environment())
    assert run_numsan.run_command([str(kernels), "divide"], **run).returncode == 66
    assert run_numsan.run_command([str(kernels), "healthy"], **run).returncode == 0


TORCH_COMES = """\
import ctypes, sys
program = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)  # its kernels are looked up in the process
program.main(2, (ctypes.c_char_p * 2)(b"", sys.argv[2].encode()))
import torch
print(float(torch.ones(2).sum()))
"""


@pytest.mark.parametrize("way, status", [("divide", 66), ("healthy", 0)])
def test_what_was_found_before_torch_came_fails_the_run(way, status, kernels, tmp_path):
    library = cc(tmp_path / "kernels.so", SOURCE.read_text(), "-g", "-shared", "-fPIC", "-pthread", f"-L{FAKES}",
                 "-l:libcuda.so.1", "-lm")
    command = [sys.executable, "-c", TORCH_COMES, str(library), way]
    done = run_numsan.run_command(command, options={"raw": "1", "fail_on": "warning"}, cwd=tmp_path, env=environment())
    assert done.returncode == status and done.stdout.endswith("2.0\n"), done.describe()
    assert ("the kernel `divide<<<>>>` made" in done.stderr) == (way == "divide"), done.describe()


def test_options_that_need_torch_are_named(kernels, tmp_path):
    done = both([kernels, "healthy"], tmp_path, options={"perf": "1", "dump": str(tmp_path / "dumps")})
    assert done.stderr == "numsan: no effect in a CUDA program without torch: perf, dump\n", done.describe()


@pytest.mark.parametrize("fault", ["cuModuleLoadData=200:1", "cuMemHostRegister=801", "cuMemHostGetDevicePointer=1"])
def test_a_device_that_cannot_be_scanned_does_no_harm(fault, kernels, tmp_path):
    """The first module is the program's; the other calls are numsan's alone."""
    env = environment()
    bare = run_numsan.run_plain_command([str(kernels), "divide"], cwd=tmp_path, env=env)
    done = run_numsan.run_command([str(kernels), "divide"], options={"raw": "1"}, cwd=tmp_path,
                                  env={**env, "FAKE_CUDA": fault})
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.describe()
    assert done.report["verdict"] == "incomplete" and done.report["findings"] == [], done.describe()
