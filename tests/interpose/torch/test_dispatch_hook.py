"""What the hook on the dispatch key does when it fails itself, and when an operator does unusual things."""
import subprocess

import pytest

import run_numsan

# 300 operands are more than the buffer of operands has room for: it grows to 512 pointers.
OUT_OF_MEMORY = """
import ctypes, os, torch
tensors = [torch.full((2,), float(i)) for i in range(300)]
ctypes.CDLL(os.environ["FAIL_NEW"]).arm()
print(sum(t.sum().item() for t in torch._foreach_add(tensors, 1.0)))
"""

# A kernel of aten's in Python; torch shows a thread's operators anew where a range of the user's begins.
RANGE_INSIDE = """
import contextlib, sys, torch
def kernel(x):
    with torch.profiler.record_function("inside") if "range" in sys.argv else contextlib.nullcontext():
        pass
    return torch.log(x)
library = torch.library.Library("aten", "IMPL")
library.impl("digamma", kernel, "CPU")
torch.digamma(torch.ones(3))
"""

BATCH_NORM = """
import sys, torch
x, mean, var = torch.rand(8, 3, 4), torch.zeros(3), torch.ones(3)
arguments = (x, torch.ones(3), torch.zeros(3), mean, var, True, 0.1, 1e-5)
out, save_mean, save_invstd = torch.empty(8, 3, 4), torch.empty(3), torch.empty(3)
if "out" in sys.argv:
    torch.ops.aten.native_batch_norm.out(*arguments, out=out, save_mean=save_mean, save_invstd=save_invstd)
else:
    torch.ops.aten.native_batch_norm.default(*arguments)
"""

# Written as their schemas say, and not one element is. (set_ is an event: what another process made arrives by it.)
# record_stream has no kernel for the CPU.
METADATA = """
import sys, torch
x, y = torch.ones(2, 3), torch.ones(4)
library = torch.library.Library("aten", "IMPL")
library.impl("record_stream", lambda tensor, stream: None, "CPU")
if "more" in sys.argv:
    x.t_(), x.transpose_(0, 1), x.unsqueeze_(0), x.squeeze_(), x.squeeze_(0), x.squeeze_((0, 1)), x.detach_()
    x.as_strided_((3, 2), (2, 1)), x.swapaxes_(0, 1), x.requires_grad_(), x.requires_grad_(False)
    torch.ops.aten.record_stream(x, torch.Stream(device="cpu"))
    y.resize_as_(torch.ones(100))
x.exp_()
"""


@pytest.fixture(scope="session")
def fail_new(tmp_path_factory):
    library = tmp_path_factory.mktemp("fail_new") / "libfail_new.so"
    source = run_numsan.REPO / "tests/interpose/torch/fail_new.cpp"
    subprocess.run(["g++", "-std=c++17", "-fPIC", "-shared", str(source), "-o", str(library)], check=True)
    return {"LD_PRELOAD": str(library), "FAIL_NEW": str(library)}


def test_program_runs_on_when_an_operator_cannot_be_described(fail_new, warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(OUT_OF_MEMORY)
    plain = run_numsan.run_plain(program, env=fail_new, cwd=tmp_path)
    assert plain.stdout == "90300.0\n", plain.describe()
    watched = run_numsan.run(program, env=fail_new, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (0, plain.stdout), watched.describe()
    assert "an operator could not be described" in watched.stderr, watched.describe()


def coverage(program, args, folder):
    """What was seen of a program that is a fork of a watched process, and of the bad value that follows it."""
    done = run_numsan.run_watched_fork(program, args=args, cwd=folder, clean=True)
    assert done.returncode == 0, done.describe()
    return done.report["coverage"]


def none_at_all(folder):
    """A program without operators."""
    program = folder / "none.py"
    program.write_text("import torch\n")
    return program


def test_inner_operators_stay_hidden_when_a_range_begins_among_them(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RANGE_INSIDE)
    seen = [coverage(program, args, tmp_path)["ops"] for args in ([], ["range"])]
    assert seen[0] == seen[1] > coverage(none_at_all(tmp_path), [], tmp_path)["ops"]


def test_silent_writes_of_an_out_overload_are_seen(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(BATCH_NORM)
    read = [coverage(program, args, tmp_path)["bytes"] for args in ([], ["out"])]
    assert read[0] == read[1] > coverage(none_at_all(tmp_path), [], tmp_path)["bytes"]


def test_what_writes_no_element_is_no_event(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(METADATA)
    ops = [coverage(program, args, tmp_path)["ops"] for args in ([], ["more"])]
    assert ops[1] - ops[0] == 2, ops  # resize_as_ allocates, and what it was given was made
