"""Operands are made again as they lay, and calls give what they gave."""
import pytest
import torch

import replay_path  # noqa: F401
import dump_maker
from dump_file import read_dump
from op_calls import CannotRun
from op_runs import Replay
from operands import Operands, Setting

BASE = torch.arange(24.0)
LAYOUTS = {
    "transposed": BASE.reshape(4, 6).t(), "expanded": BASE[:4].reshape(4, 1).expand(4, 6), "slice": BASE[::3],
    "offset": BASE[5:11], "channels_last": BASE.reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    "windows": BASE[:10].unfold(0, 4, 2), "scalar": torch.tensor(3.0), "empty": torch.empty(0, 3).t(),
    "all_one": torch.ones(1).expand(3, 5), "windows_in_half": BASE[:10].half().unfold(0, 4, 2),
}
TYPES = [torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int64, torch.bool,
         torch.uint8, torch.complex64]


def first_operand(path, setting=Setting()):
    dump = read_dump(path)
    return Operands(dump, dump.op).make(setting)[0][0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_strides_and_values(name, tmp_path):
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::neg", [LAYOUTS[name]])
    made = first_operand(path)
    assert torch.equal(made, LAYOUTS[name])
    if LAYOUTS[name].numel():
        assert made.stride() == LAYOUTS[name].stride()
    assert first_operand(path, Setting(contiguous=True)).is_contiguous()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types_bit_by_bit(dtype, tmp_path):
    values = torch.arange(6).to(dtype)
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::clone", [values])
    made = first_operand(path)
    assert made.dtype == dtype and torch.equal(made.view(torch.uint8), values.view(torch.uint8))


def test_a_slice_of_much_memory_is_contiguous(tmp_path):
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::neg", [torch.ones(2)])
    dump = read_dump(path)
    dump.op.args[0].strides = (2**40,)
    operands = Operands(dump, dump.op)
    assert operands.make(Setting())[0][0].is_contiguous() and "slice of much memory" in operands.notes[0]


def test_one_tensor_twice(tmp_path):
    x = torch.rand(3)
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::add_", [x, x], overload="Tensor")
    dump = read_dump(path)
    dump.op.args[1].tensor = dump.op.args[1].same_as = dump.op.args[0].tensor
    positional, _ = Operands(dump, dump.op).make(Setting())
    assert positional[0] is positional[1]


CALLS = {
    "number": ("aten::add", "Scalar", [torch.rand(3), 2]),
    "infinity": ("aten::mul", "Scalar", [torch.ones(3), float("inf")]),
    "complex": ("aten::mul", "Scalar", [torch.rand(3), 1 + 2j]),
    "none": ("aten::clamp", "", [torch.rand(3), None, 0.5]),
    "list": ("aten::sum", "dim_IntList", [torch.rand(2, 3), [1], True]),
    "tensors": ("aten::cat", "", [[torch.rand(2), torch.rand(3)], 0]),
    "optional_tensors": ("aten::index", "Tensor", [torch.rand(3, 3), [None, torch.tensor([0, 2])]]),
    "string": ("aten::div", "Tensor_mode", {"self": torch.rand(3), "other": torch.rand(3), "rounding_mode": "floor"}),
    "dtype": ("aten::_to_copy", "", {"self": torch.rand(3), "dtype": torch.float16}),
    "in_place": ("aten::mul_", "Tensor", [torch.rand(3), torch.rand(3)]),
    "several_results": ("aten::var_mean", "correction", {"self": torch.rand(2, 3), "dim": [1], "correction": 0}),
    "foreach": ("aten::_foreach_mul", "Scalar", [[torch.rand(2), torch.rand(3)], 2.0]),
    "foreach_in_place": ("aten::_foreach_mul_", "Scalar", [[torch.rand(2), torch.rand(3)], 2.0]),
    "convolution": ("aten::convolution", "", [torch.rand(1, 2, 5, 5), torch.rand(3, 2, 3, 3), None, [1, 1], [0, 0],
                                              [1, 1], False, [0, 0], 1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_give_what_they_gave(name, tmp_path):
    op, overload, args = CALLS[name]
    results = None
    if name == "foreach_in_place":
        results = [[values * 2 for values in args[0]]]
    path = dump_maker.make_dump(tmp_path / "a.safetensors", op, args, overload=overload, results=results)
    replay = Replay(read_dump(path))
    assert replay.first.agreement.bits, replay.first
    assert replay.run("repeats").differing == 0


def test_random_numbers_are_drawn_again(tmp_path):
    state = torch.get_rng_state()
    dropped = torch.ops.aten.native_dropout(torch.ones(64), 0.5, True)
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::native_dropout", [torch.ones(64), 0.5, True],
                                results=list(dropped), rng={"cpu": state})
    replay = Replay(read_dump(path))
    assert replay.first.agreement.bits and replay.run("float64") is None


@pytest.mark.parametrize("name, overload, args, said", [
    ("c10d::allreduce_", "", [], "is a collective"), ("aten::nothing_of_the_kind", "", [], "has no operator"),
    ("mine::op", "", [], "has no operator mine::op"),
    ("aten::log; import os", "", [], "is not the name of an operator"),
    ("aten::from_file", "", [], "takes a filename: that is not run for a dump"),
    ("aten::log", "", [{"name": "other", "kind": "none"}], "has no argument `other`"),
    ("aten::log", "", [], "the dump has no argument `self`"),
    ("aten::log", "", [{"name": "self", "kind": "left_out", "why": "2 GB are over dump_limit=1G"}],
     "left out of the dump: 2"),
    ("aten::log", "", [{"name": "self", "kind": "string", "value": "x"}], "log"),
])
def test_what_cannot_be_run(name, overload, args, said, tmp_path):
    import json
    what = {"dump_version": 1, "op": {"name": name, "overload": overload, "args": args, "results": []}}
    path = dump_maker.write_safetensors(tmp_path / "a.safetensors", {}, {"numsan_dump": json.dumps(what)})
    with pytest.raises(CannotRun) as error:
        Replay(read_dump(path))
    assert said in str(error.value), error.value
