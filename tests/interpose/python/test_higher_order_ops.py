"""Higher-order operators work as without numsan, from the first statement on and on every thread."""
import pathlib

import pytest

import run_numsan
from nightly import in_ci

pytestmark = pytest.mark.xdist_group("higher_order_ops")  # the run without numsan is shared
PROGRAM = pathlib.Path(__file__).resolve().parent / "higher_order.py"
OPERATORS = ["cond", "while_loop", "flex_attention", "exported", "compiled"]

BRANCH = """
import torch
weight = torch.nn.Parameter(torch.full((4,), 2.0))
def plain(a):
    return a * 2
def bad(a):
    return torch.log(-a)  # BUG
for step in range(2):
    loss = torch.cond(torch.tensor(step == 1), bad, plain, (weight,)).sum()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
"""


@pytest.fixture(scope="module")
def plain_lines(tmp_path_factory):
    """What each operator prints without numsan, and what is printed at the end."""
    plain = run_numsan.run_forked(PROGRAM, args=["main", *OPERATORS], cwd=tmp_path_factory.mktemp("plain"), timeout=400)
    lines = plain.stdout.splitlines(keepends=True)
    assert plain.returncode == 0 and [line.split()[0] for line in lines[:-1]] == OPERATORS, plain.describe()
    return dict(zip([*OPERATORS, "end"], lines, strict=True))


def check(arguments, plain_lines, tmp_path, env=None):
    watched = run_numsan.run(PROGRAM, args=arguments, env=env, cwd=tmp_path, timeout=400)
    expected = "".join(plain_lines[name] for name in [*arguments[1:], "end"])
    assert (watched.returncode, watched.stdout) == (0, expected), f"{expected}\n{watched.describe()}"


@pytest.mark.parametrize("thread", in_ci(["main", "another"], "main"))
def test_all_give_what_they_give_without_numsan(thread, plain_lines, warm, tmp_path):
    check([thread, *OPERATORS], plain_lines, tmp_path)


@pytest.mark.parametrize("first", in_ci(OPERATORS[1:], "while_loop"))
def test_each_may_be_the_first_thing_a_program_does(first, plain_lines, warm, tmp_path):
    check(["main", first], plain_lines, tmp_path)


def test_all_work_where_another_library_holds_the_key(plain_lines, no_key, tmp_path):
    check(["main", *OPERATORS], plain_lines, tmp_path, env=no_key)


def test_a_bad_value_in_a_branch_is_named_by_its_line_there(warm, tmp_path):
    """torch traces the branch: what runs is code that torch.fx wrote, which no file has, out of lines that one has."""
    program = tmp_path / "branch.py"
    program.write_text(BRANCH)
    done = run_numsan.run_watched_fork(program, cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    places = [(finding["op"], finding["location"]["file"], finding["location"]["line"]) for finding in done.findings]
    assert places == [("aten::log", str(program), run_numsan.marked_line(program))], done.describe()
