"""Autograd's nodes are seen without a record function that listens in all of the process; where torch is bound to its
own functions by one that does, and both say the same."""
import os
import pathlib
import subprocess

import pytest

import run_numsan
from compiled_once import compiled_once

HERE = pathlib.Path(__file__).resolve().parent


def essence(done):
    assert done.report is not None, done.describe()
    keys = ("code", "kind", "severity", "op", "phase", "step", "seq", "location", "mechanism", "outputs", "forward",
            "escape", "contaminated")
    return [{key: finding[key] for key in keys} for finding in done.findings]


def own_calls():
    source = HERE / "own_calls.c"

    def command(output):
        return ["gcc", "-O1", "-fPIC", "-fexceptions", "-shared", source, "-o", output, "-ldl"]

    return compiled_once(source, run_numsan.CACHE / "tests" / "libown_calls.so", command)


LEAF = """
import ctypes, os, torch
leaf, gradient = torch.ones(3, requires_grad=True), torch.ones(3)
leaf.backward(gradient)
ctypes.CDLL(os.environ["FAIL_NODE"]).arm()
leaf.backward(gradient)
print(leaf.grad.tolist())
"""


def test_program_runs_on_when_a_node_cannot_be_described(warm, tmp_path):
    library = tmp_path / "libfail_node.so"
    subprocess.run(["g++", "-std=c++17", "-fPIC", "-shared", str(HERE / "fail_node.cpp"), "-o", str(library)],
                   check=True)
    program = tmp_path / "program.py"
    program.write_text(LEAF)
    environment = {"LD_PRELOAD": str(library), "FAIL_NODE": str(library)}
    plain = run_numsan.run_plain(program, env=environment, cwd=tmp_path)
    assert (plain.returncode, plain.stdout) == (0, "[2.0, 2.0, 2.0]\n"), plain.describe()
    watched = run_numsan.run(program, env=environment, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (0, plain.stdout), watched.describe()
    assert "numsan: off: a node of autograd could not be described" in watched.stderr, watched.describe()


@pytest.mark.nightly
def test_a_torch_whose_functions_return_something_else_is_not_stood_in_for(tmp_path):
    """Their symbols would be the same."""
    found = subprocess.run([run_numsan.PYTHON, "-c", "import torch; print(torch.__path__[0])"], check=True,
                           capture_output=True, text=True, env=run_numsan.plain_environment())
    include = pathlib.Path(found.stdout.strip()) / "include"
    usual = (include / "ATen/record_function.h").read_text()
    declared = "TORCH_API std::optional<StepCallbacks> getStepCallbacksUnlessEmpty("
    assert usual.count(declared) == 1
    other = "struct Another : std::optional<StepCallbacks> { using optional::optional; };\nTORCH_API Another "
    (tmp_path / "ATen").mkdir()
    (tmp_path / "ATen/record_function.h").write_text(
        usual.replace(declared, other + "getStepCallbacksUnlessEmpty("))
    source = tmp_path / "another_torch.cpp"
    source.write_text('#include "interpose/torch/autograd_calls.cpp"\nstatic_assert(!numsan::kTypesAreKnown);\n')
    folders = (tmp_path, run_numsan.REPO, include, include / "torch/csrc/api/include")
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", *[f"-I{one}" for one in folders],
                    str(source)], check=True, timeout=400)


def test_nodes_are_the_same(warm, tmp_path):
    for name in ("usual", "bound"):
        (tmp_path / name).mkdir()
    program = [run_numsan.PYTHON, str(HERE / "nodes.py")]
    usual = run_numsan.run_command(program, cwd=tmp_path / "usual", timeout=600)
    before = f"LD_PRELOAD={own_calls()}:{run_numsan.LIBRARY}"
    bound = run_numsan.run_command(["env", before, *program], cwd=tmp_path / "bound", timeout=600)
    assert (usual.returncode, usual.stdout) == (0, "nobody listens\n"), usual.describe()
    assert (bound.returncode, bound.stdout) == (0, "listens\n"), bound.describe()
    assert essence(usual) == essence(bound), usual.describe() + bound.describe()
    assert len(usual.findings) >= 7, usual.describe()
    assert usual.report["coverage"]["ops"] == bound.report["coverage"]["ops"], bound.describe()
