"""Higher-order operators work as without numsan, from the first statement on and on every thread."""
import pathlib

import pytest

import run_numsan

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


def check(arguments, tmp_path, env=None):
    plain = run_numsan.run_plain(PROGRAM, args=arguments, env=env, cwd=tmp_path, timeout=400)
    assert plain.returncode == 0 and plain.stdout.count("\n") == len(arguments), plain.describe()
    watched = run_numsan.run(PROGRAM, args=arguments, env=env, cwd=tmp_path, timeout=400)
    assert (watched.returncode, watched.stdout) == (0, plain.stdout), f"{plain.stdout}\n{watched.describe()}"


@pytest.mark.parametrize("thread", ["main", "another"])
def test_all_give_what_they_give_without_numsan(thread, warm, tmp_path):
    check([thread, *OPERATORS], tmp_path)


@pytest.mark.parametrize("first", OPERATORS[1:])
def test_each_may_be_the_first_thing_a_program_does(first, warm, tmp_path):
    check(["main", first], tmp_path)


def test_all_work_where_another_library_holds_the_key(no_key, tmp_path):
    check(["main", *OPERATORS], tmp_path, env=no_key)


def test_a_bad_value_in_a_branch_is_named_by_its_line_there(warm, tmp_path):
    """torch traces the branch: what runs is code that torch.fx wrote, which no file has, out of lines that one has."""
    program = tmp_path / "branch.py"
    program.write_text(BRANCH)
    done = run_numsan.run(program, cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    places = [(finding["op"], finding["location"]["file"], finding["location"]["line"]) for finding in done.findings]
    assert places == [("aten::log", str(program), run_numsan.marked_line(program))], done.describe()
