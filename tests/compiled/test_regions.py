"""Regions that torch.compile made kernels of are looked into: the op and the line that made a bad value are named."""
import pathlib
import re
import shutil

import pytest

import run_numsan

pytestmark = [pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++"),
              pytest.mark.xdist_group("compiled_regions")]
HERE = pathlib.Path(__file__).resolve().parent
LOSSES, LEFT_ALONE = HERE / "losses.py", HERE / "left_alone.py"
MARKED = {number: found.group(1) for number, line in enumerate(LOSSES.read_text().splitlines(), 1)
          if (found := re.search(r"# BUG (\S+)$", line))}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Where torch.compile keeps what it makes: the runs share it."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path_factory.mktemp("kernels"))}


@pytest.fixture(scope="module")
def found(warm, kernels, tmp_path_factory):
    done = run_numsan.run(LOSSES, cwd=tmp_path_factory.mktemp("losses"), timeout=600, env=kernels)
    assert done.returncode == 0, done.describe()
    run_numsan.validate(done.report)
    return done


def op_of(finding):
    return finding["forward"]["op"] if finding["forward"] else finding["op"]


def test_each_line_and_its_op_are_named(found):
    places = {finding["location"]["line"]: op_of(finding) for finding in found.findings}
    assert places == MARKED, found.describe()


def test_the_generated_kernel_is_named(found):
    """One that has the op in its name, where it stands. A product of matrices is not generated: it is a library's."""
    named = {}
    for finding in found.findings:
        for frame in finding["stack"]:
            if frame["kind"] == "compiled":
                line = pathlib.Path(frame["file"]).read_text().splitlines()[frame["line"] - 1]
                assert line.startswith(f"{frame['function']} = async_compile.cpp_pybinding("), line
                assert "_" + finding["op"].removeprefix("aten::") + "_" in frame["function"], finding
                named.setdefault(finding["location"]["line"], []).append(frame["function"])
    generated = {line for line, op in MARKED.items() if op != "aten::mm"}
    assert set(named) == generated and all(len(kernels) == 1 for kernels in named.values()), named
    assert f"= kernel:   {named[min(named)][0]} at " in found.stderr, found.describe()


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_graphs_that_run_op_by_op_name_the_same_lines(backend, warm, tmp_path):
    done = run_numsan.run(LOSSES, args=[f"backend={backend}"], cwd=tmp_path, timeout=600)
    assert sorted(finding["location"]["line"] for finding in done.findings) == sorted(MARKED), done.describe()
    assert "kernel:" not in done.stderr, done.describe()


def test_no_frame_of_numsans_own_is_shown(found):
    text = str(found.report["findings"]) + found.stderr
    assert "<numsan>" not in text and "numsan_runs" not in text and "numsan_region" not in text, found.describe()
    assert all("resume" not in finding["location"]["function"] for finding in found.findings), found.describe()


def test_it_says_how_it_knows(found):
    said = ("torch.compile made kernels of this code: its graph was run once more, op by op, on what the kernels were "
            "given")
    assert all(said in finding["evidence"] for finding in found.findings), found.describe()


def test_healthy_losses_are_met_with_silence_and_stay_the_same(warm, kernels, tmp_path):
    watched = run_numsan.run(LOSSES, args=["healthy"], cwd=tmp_path, timeout=600, env=kernels)
    assert "numsan:" not in watched.stderr and not watched.findings, watched.describe()
    plain = run_numsan.run_plain(LOSSES, args=["healthy"], cwd=tmp_path, timeout=600, env=kernels)
    assert watched.stdout == plain.stdout and plain.stdout.count("True") == plain.stdout.count("\n"), plain.describe()


def test_the_program_does_not_notice(warm, kernels, tmp_path):
    plain = run_numsan.run_plain(LEFT_ALONE, cwd=tmp_path, timeout=600, env=kernels)
    watched = run_numsan.run(LEFT_ALONE, cwd=tmp_path, timeout=600, env=kernels)
    assert plain.returncode == 0 and watched.stdout == plain.stdout, f"{plain.describe()}\n{watched.describe()}"
    assert watched.findings, watched.describe()


INTENDED = """
import torch
w = torch.nn.Parameter(torch.ones(4, 4))
optimizer = torch.optim.SGD([w], lr=0.001)
@torch.compile
def scored(x):
    scores = torch.log(x @ w)  # BUG
    hidden = scores.detach().masked_fill(torch.ones(4, 4).tril() == 0, float("-inf"))
    return hidden, scores.sum()
for step in range(8):
    hidden, loss = scored(torch.ones(4, 4) if step < 7 else -torch.ones(4, 4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_infinities_that_a_program_writes_each_time_do_not_use_up_the_runs(warm, kernels, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(INTENDED)
    done = run_numsan.run(program, cwd=tmp_path, timeout=600, env=kernels)
    assert done.returncode == 0 and [op_of(finding) for finding in done.findings] == ["aten::log"], done.describe()
    assert done.findings[0]["location"]["line"] == run_numsan.marked_line(program), done.describe()
    assert done.findings[0]["step"] == 7, done.describe()


def test_without_the_option_regions_are_left_alone(warm, kernels, tmp_path):
    done = run_numsan.run(LOSSES, args=["angle"], cwd=tmp_path, timeout=600, env=kernels, options={"regions": "0"})
    assert done.findings and all(op_of(finding) != "aten::acos" for finding in done.findings), done.describe()
