"""Ranges that a program names by torch.cuda.nvtx, which takes no GPU: what is born inside numsan:ignore is meant, what
is born inside others says so."""
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
    loss = (weight * value).log().sum()  # LOG
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

NAMED = """
for number in range(1000):
    nvtx.range_start(f"left open {number}")
epoch = nvtx.range_start("epoch {}".format(3))
nvtx.range_push("train")
with nvtx.range("encoder"):
    step(1.0)
with nvtx.range("decoder/attn"):
    step(VALUE)  # BUG
nvtx.range_pop()
nvtx.range_end(epoch)
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


def test_finding_says_which_ranges_it_is_inside_of(nvtx, tmp_path):
    path, done = both(tmp_path, NAMED.replace("VALUE", "-1.0"), run_numsan.run)
    assert len(done.findings) == 1, done.describe()
    found = done.findings[0]
    assert found["location"]["line"] == run_numsan.marked_line(path, "# LOG"), done.describe()
    assert [frame["function"] for frame in found["stack"] if frame["kind"] == "nvtx"] == [
        "decoder/attn", "train", "epoch 3", *[f"left open {number}" for number in range(999, 984, -1)]], done.describe()
    assert "= inside:   left open 985 > " in done.stderr, done.describe()
    assert "left open 999 > epoch 3 > train > decoder/attn\n" in done.stderr, done.describe()


BACKWARD = """
x = torch.zeros(3, requires_grad=True)
with nvtx.range("decoder/attn"):
    root = (x * 2).sqrt()  # ROOT
with nvtx.range("backward"):
    root.sum().backward()
torch.optim.SGD([x], lr=0.1).step()
"""


def test_finding_of_a_backward_pass_says_where_its_forward_was(nvtx, tmp_path):
    path, done = both(tmp_path, BACKWARD, run_numsan.run)
    assert len(done.findings) == 1, done.describe()
    found = done.findings[0]
    assert found["location"]["line"] == run_numsan.marked_line(path, "# ROOT"), done.describe()
    assert found["forward"]["stack"][-1] == {"kind": "nvtx", "function": "decoder/attn", "file": None, "line": None}
    assert "= inside:   decoder/attn; its backward is inside backward" in done.stderr, done.describe()


WORKERS = """
import torch.utils.data


class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        with nvtx.range("decode"):
            return torch.log(torch.tensor([float(index) - 1]))  # WORKER


for batch in torch.utils.data.DataLoader(Batches(), num_workers=1):
    with nvtx.range("train"):
        (weight * batch).sum().backward()
opt.step()
"""


def test_value_of_a_worker_has_none_of_the_ranges_of_its_reader(nvtx, tmp_path):
    path, done = both(tmp_path, WORKERS, run_numsan.run)
    found = [one for one in done.findings if one["location"]["line"] == run_numsan.marked_line(path, "# WORKER")]
    assert found and "nvtx" not in [frame["kind"] for one in found for frame in one["stack"]], done.describe()


def test_healthy_program_with_ranges_is_silent(nvtx, tmp_path):
    _, done = both(tmp_path, NAMED.replace("VALUE", "2.0"), functools.partial(run_numsan.run_watched_fork, clean=True))
    assert done.findings == [] and done.report["verdict"] == "clean", done.describe()
