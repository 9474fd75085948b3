"""The programs that `--script` writes: short, of torch alone, and they do what the program did, in other processes."""
import re
import shutil

import pytest
import torch

import replay_path  # noqa: F401
import dump_maker
import run_numsan
from dump_file import read_dump
from op_runs import Replay
from script_writer import ScriptWriter

NAN = float("nan")
LARGE = torch.linspace(-1, 1, 5000)
CALLS = {
    "listed": ("aten::log", "", [torch.tensor([0.0, 0.1, -1.0])]),
    "half": ("aten::exp", "", [torch.tensor([12.0, 1.0]).half()]),
    "eight_bits": ("aten::_to_copy", "", {"self": torch.tensor([1000.0, 1.0]), "dtype": torch.float8_e4m3fn}),
    "not_finite": ("aten::mul", "Tensor", [torch.tensor([NAN, float("inf"), 1.0]), torch.tensor([0.0, 0.0, 2.0])]),
    "transposed": ("aten::mm", "", [torch.full((3, 2), 3e38).t(), torch.linspace(1, 2, 6).reshape(3, 2)]),
    "expanded": ("aten::div", "Tensor", [torch.rand(3, 4), torch.zeros(3, 1).expand(3, 4)]),
    "encoded": ("aten::sqrt", "", [torch.linspace(-1, 1, 200)]),
    "from_the_dump": ("aten::sqrt", "", [LARGE]),
    "complex": ("aten::log", "", [torch.tensor([0j, 1 + 1j])]),
    "integers": ("aten::div", "Tensor", [torch.tensor([1, 2]), torch.tensor([0, 1])]),
    "empty": ("aten::mean", "", [torch.zeros(0)]),
    "in_place": ("aten::div_", "Tensor", [torch.ones(2), torch.tensor([0.0, 1.0])]),
    "list_in_place": ("aten::_foreach_log_", "", [[torch.zeros(2), torch.ones(3)]]),
    "many_operands": ("aten::_foreach_log", "", [[torch.rand(3) - 0.5 for _ in range(60)]]),
    "settings": ("aten::nll_loss_forward", "", [torch.tensor([[-1.0, -2.0]]), torch.tensor([-100]), None, 1, -100]),
    "keywords": ("aten::var", "correction", {"self": torch.ones(1), "correction": 1}),
    "infinite_number": ("aten::mul", "Scalar", [torch.zeros(2), float("inf")]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


def script_of(name, folder):
    op, overload, args = CALLS[name]
    results = None
    if name == "list_in_place":
        results = [[torch.full((2,), float("-inf")), torch.zeros(3)]]
    path = dump_maker.make_dump(folder / f"{name}.safetensors", op, args, overload=overload, results=results)
    script = folder / f"{name}.py"
    script.write_text(ScriptWriter(Replay(read_dump(path)), str(folder)).text())
    return script


@pytest.mark.parametrize("name", CALLS)
def test_it_happens_again(name, folder):
    script = script_of(name, folder)
    text = script.read_text()
    assert len(text.splitlines()) < 40
    imported = set(re.findall(r"^import (.*)$", text, re.MULTILINE))
    assert {word for line in imported for word in line.split(", ")} <= {"base64", "json", "os", "sys", "torch"}
    assert ("read(" in text) == (name == "from_the_dump")
    done = run_numsan.run_forked(script, cwd=folder)
    assert done.returncode == 0, f"{text}\n{done.describe()}"
    found, wanted = re.fullmatch(r"(.*); in the program (.*)\n", done.stdout).groups()
    assert re.findall(r"\d+", found) == re.findall(r"\d+", wanted), done.stdout


def test_another_result_is_exit_status_1(folder):
    script = script_of("listed", folder)
    changed = folder / "changed.py"
    changed.write_text(script.read_text().replace("-1.0]", "1.0]"))
    done = run_numsan.run_forked(changed, cwd=folder)
    assert done.returncode == 1 and done.stdout.startswith("nan 0"), done.describe()


def test_a_dump_in_another_folder(folder, tmp_path):
    script_of("from_the_dump", folder)
    shutil.copy(folder / "from_the_dump.safetensors", tmp_path / "d.safetensors")
    (tmp_path / "below").mkdir()
    text = ScriptWriter(Replay(read_dump(tmp_path / "d.safetensors")), str(tmp_path / "below")).text()
    assert "'../d.safetensors'" in text


def test_names_of_a_stranger_are_no_code(folder):
    path = dump_maker.make_dump(folder / "names.safetensors", "aten::log", [LARGE])
    dump = read_dump(path)
    dump.path = str(folder / "a\"'''\nimport os\n.safetensors")
    dump.op.args[0].name = "self"
    text = ScriptWriter(Replay(dump), str(folder)).text()
    compile(text, "script", "exec")
    assert "import os\n" not in text.replace("import json, os, sys\n", "")
