"""Ranges that a program names by torch.cuda.nvtx, which takes no GPU: what is born inside numsan:ignore is meant."""
import functools
import subprocess

import pytest

import run_numsan

PROGRAM = """
import threading
import torch

nvtx = torch.cuda.nvtx
weight = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([weight], lr=0.1)


def step(value):
    loss = (weight * value).log().sum()
    opt.zero_grad()
    loss.backward()


"""

MEANT = """
print(nvtx.range_push("epoch"), nvtx.range_push("numsan:ignore"), nvtx.range_push("step"))
step(-1.0)
print(nvtx.range_pop(), nvtx.range_pop(), nvtx.range_pop())

meant, other = nvtx.range_start("numsan:ignore"), nvtx.range_start("epoch")
thread = threading.Thread(target=lambda: (step(-1.0), nvtx.range_end(meant)))
thread.start()
thread.join()
nvtx.range_end(other)

with nvtx.range("numsan:ignore"):
    step(-1.0)
"""

BAD = """
with nvtx.range("numsan"):
    step(-1.0)  # BUG
"""


@pytest.fixture(scope="module")
def nvtx(warm):
    code = "import torch; torch.cuda.nvtx.range_push('x')"
    done = subprocess.run([run_numsan.PYTHON, "-c", code], capture_output=True, text=True,
                          env=run_numsan.plain_environment())
    if done.returncode != 0:
        pytest.skip(f"this torch has no NVTX: {done.stderr.strip().splitlines()[-1]}")


def both(tmp_path, body, run):
    """Runs a program with and without numsan, which sees the same."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + body)
    bare = run_numsan.run_forked(path, cwd=tmp_path)
    done = run(path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) and done.returncode == 0, done.describe()
    return path, done


def test_what_is_made_inside_is_not_reported(nvtx, tmp_path):
    _, done = both(tmp_path, MEANT, functools.partial(run_numsan.run_watched_fork, clean=True))
    assert done.findings == [] and done.report["verdict"] == "clean", done.describe()


def test_what_is_made_after_it_or_in_a_range_of_another_name_is(nvtx, tmp_path):
    path, done = both(tmp_path, MEANT + BAD, run_numsan.run)
    assert len(done.findings) == 1, done.describe()
    lines = [frame["line"] for frame in done.findings[0]["stack"] if frame["kind"] == "python"]
    assert run_numsan.marked_line(path) in lines, done.describe()
