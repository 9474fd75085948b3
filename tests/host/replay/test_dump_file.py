"""Descriptions of calls of any origin: the place of what is wrong is said."""
import json

import pytest
import torch

import replay_path  # noqa: F401
import dump_maker
from dump_file import read_dump
from safetensors_file import DumpError

TENSOR = {"kind": "tensor", "tensor": "x", "sizes": [2], "strides": [1], "dtype": "float32"}
GOOD = {"dump_version": 1, "op": {"name": "aten::log", "args": [TENSOR], "results": []}}


def with_argument(**changed):
    return {**GOOD, "op": {**GOOD["op"], "args": [{**TENSOR, **changed}]}}


BAD = {
    "version": ({**GOOD, "dump_version": 2}, "expected version 1; another numsan wrote this at numsan_dump/"),
    "no_version": ({"op": GOOD["op"]}, "expected an integer at numsan_dump/dump_version"),
    "no_op": ({"dump_version": 1}, "expected an object at numsan_dump/op"),
    "no_name": ({**GOOD, "op": {"args": []}}, "expected a string at numsan_dump/op/name"),
    "args": ({**GOOD, "op": {"name": "aten::log", "args": 5}}, "expected a list at numsan_dump/op/args"),
    "argument": ({**GOOD, "op": {"name": "a", "args": [5]}}, "expected an object at numsan_dump/op/args/0"),
    "kind": (with_argument(kind="pickle"), "expected a kind of argument that this version knows"),
    "no_tensor": (with_argument(tensor="y"), "expected the name of a tensor in the file at numsan_dump/op/args/0/"),
    "sizes": (with_argument(sizes=[3]), "expected sizes of 8 bytes of torch.float32 at numsan_dump/op/args/0/sizes"),
    "negative": (with_argument(sizes=[-2]), "at numsan_dump/op/args/0/sizes"),
    "strides": (with_argument(strides=[1, 1]), "expected 1 strides at numsan_dump/op/args/0/strides"),
    "dtype": (with_argument(dtype="save"), "expected an element type of this torch at numsan_dump/op/args/0/dtype"),
    "grad": (with_argument(requires_grad=1), "expected true or false at numsan_dump/op/args/0/requires_grad"),
    "number": (with_argument(kind="number", value="many"), "expected a number at numsan_dump/op/args/0/value"),
    "large": (with_argument(kind="number", value=2**70), "expected a number of 64 bits"),
    "bool": (with_argument(kind="bool", value="yes"), "expected a value of kind bool"),
    "nested": (with_argument(kind="list", items=[{"kind": "list", "items": [{"kind": "list", "items": [
        {"kind": "list", "items": [{"kind": "list", "items": [{"kind": "none"}]}]}]}]}]), "lists that are nested less"),
    "forward": ({**GOOD, "forward": 3}, "expected an object or null at numsan_dump/forward"),
    "rng": ({**GOOD, "rng": {"cpu": "y"}}, "expected the name of a tensor in the file at numsan_dump/rng/cpu"),
}


def write(path, description):
    text = description if isinstance(description, str) else json.dumps(description)
    return dump_maker.write_safetensors(path, {"x": torch.ones(2)}, {"numsan_dump": text})


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said(name, tmp_path):
    description, said = BAD[name]
    with pytest.raises(DumpError) as error:
        read_dump(write(tmp_path / "a.safetensors", description))
    assert said in str(error.value) and "byte 8" in str(error.value), error.value


def test_the_good_one_is_read(tmp_path):
    dump = read_dump(write(tmp_path / "a.safetensors", GOOD))
    assert str(dump.op) == "aten::log" and torch.equal(dump.tensor(dump.op.args[0]), torch.ones(2))


@pytest.mark.parametrize("text, said", [("{", "expected JSON at numsan_dump"), ("[1]", "expected an object"),
                                        ('{"a": 1, "a": 2}', "a key stands twice")])
def test_no_description(text, said, tmp_path):
    with pytest.raises(DumpError, match=said):
        read_dump(write(tmp_path / "a.safetensors", text))


def test_a_file_of_another_program(tmp_path):
    path = dump_maker.write_safetensors(tmp_path / "a.safetensors", {"x": torch.ones(2)}, {"format": "pt"})
    with pytest.raises(DumpError, match="a safetensors file that numsan did not write"):
        read_dump(path)
