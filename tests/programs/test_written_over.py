"""Values that no operator wrote into the memory of a tensor: where they were read first, and what wrote it before."""
import pytest

import run_numsan

PROGRAM = """
import ctypes, sys, torch
torch.manual_seed(0)
first, last = torch.nn.Linear(4, 6), torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
def scale_in_c(tensor, value):
    ctypes.cast(tensor.data_ptr(), ctypes.POINTER(ctypes.c_float))[3] = value
for step in range(4):
    x = torch.randn(8, 4)
    if "data" in sys.argv:
        x = x * 2 + 1  # WROTE DATA
        scale_in_c(x, float("nan") if step == 2 else 0.5)
    h = torch.tanh(first(x))  # WROTE
    if "hidden" in sys.argv:
        scale_in_c(h, float("nan") if step == 2 else 0.5)
    loss = last(h).square().mean()  # READ
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("which, wrote, read, category", [("hidden", "# WROTE", "# READ", "N9"),
                                                          ("data", "# WROTE DATA", "# WROTE", "N1")])
def test_both_lines_are_named(which, wrote, read, category, warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run_numsan.run_watched_fork(program, args=[which], cwd=tmp_path)
    assert done.returncode == 0 and len(done.findings) == 1, done.describe()
    run_numsan.validate(done.report)
    found = done.findings[0]
    assert found["title"].startswith(
        "first NaN of this run: it appeared in a tensor between two operators, first read by `aten::addmm`"), found
    assert found["location"]["line"] == run_numsan.marked_line(program, read), done.describe()
    assert found["written_location"]["line"] == run_numsan.marked_line(program, wrote), done.describe()
    assert found["category"]["id"] == category and found["step"] == 2, done.describe()
    assert "note: last written by " in done.stderr, done.describe()


def test_nothing_is_said_of_finite_values(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("nan", "0.25"))
    for which in ("hidden", "data"):
        done = run_numsan.run_watched_fork(program, args=[which], cwd=tmp_path, clean=True)
        assert not done.findings and "numsan:" not in done.stderr, done.describe()
