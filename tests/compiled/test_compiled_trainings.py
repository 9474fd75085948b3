"""Trainings with compiled parts, written by somebody who had not seen numsan: each finding is at the marked line."""
import ast
import pathlib
import re
import shutil

import pytest

import run_numsan

pytestmark = [pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++"),
              pytest.mark.xdist_group("compiled_trainings")]
TRAININGS = pathlib.Path(__file__).resolve().parent / "trainings.py"
MODULES = ["torch._inductor.compile_fx"]  # which takes longer to import than a training takes


def marked():
    """{training: (line, operator)}: the line stands in the training, or in what comes before it."""
    text = TRAININGS.read_text()
    trainings = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)
                 and [argument.arg for argument in node.args.args] == ["backend"]]
    marks = [(number, mark.group(1)) for number, line in enumerate(text.splitlines(), 1)
             if (mark := re.search(r"# BUG (\S+)$", line))]
    assert len(marks) == len(trainings)
    return {next(node.name for node in trainings if node.end_lineno >= mark[0]): mark for mark in marks}


MARKED = marked()


def found_in(training, backend, tmp_path):
    """The line and the operators of its only finding."""
    done = run_numsan.run_watched_fork(TRAININGS, args=[f"backend={backend}", training], cwd=tmp_path, timeout=600,
                                       modules=MODULES)
    assert done.returncode == 0 and len(done.findings) == 1, done.describe()
    found = done.findings[0]
    assert found["location"] and found["location"]["file"] == str(TRAININGS), done.describe()
    return found["location"]["line"], found["forward"]["op"] if found["forward"] else found["op"], found


@pytest.mark.parametrize("training", MARKED)
def test_kernels_of_inductor(training, warm, tmp_path):
    line, op, _ = found_in(training, "inductor", tmp_path)
    assert (line, op) == MARKED[training]


@pytest.mark.nightly
@pytest.mark.parametrize("training", MARKED)
def test_graphs_that_run_op_by_op(training, warm, tmp_path):
    line, op, _ = found_in(training, "eager", tmp_path)
    assert (line, op) == MARKED[training]


@pytest.mark.nightly
@pytest.mark.parametrize("training", MARKED)
def test_graphs_of_aten_that_run_op_by_op(training, warm, tmp_path):
    line, op, found = found_in(training, "aot_eager", tmp_path)
    assert line == MARKED[training][0]
    assert op == MARKED[training][1] or found["phase"] == "backward", f"{op}: the graph has the derivative's own ops"


def test_healthy_trainings_are_met_with_silence_and_stay_the_same(warm, tmp_path):
    watched = run_numsan.run_watched_fork(TRAININGS, args=["healthy"], cwd=tmp_path, timeout=600, modules=MODULES,
                                          clean=True)
    assert "numsan:" not in watched.stderr and not watched.findings, watched.describe()
    plain = run_numsan.run_forked(TRAININGS, args=["healthy"], cwd=tmp_path, timeout=600, modules=MODULES)
    assert watched.stdout == plain.stdout and plain.stdout.count("True") == len(MARKED), plain.describe()
