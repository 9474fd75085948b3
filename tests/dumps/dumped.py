"""Reads a dump and runs its operator again, by nothing but torch and the safetensors package."""
import json
import struct

import torch
from safetensors.torch import load_file

PLAIN = {"number", "bool", "string"}
NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def header(path):
    """The header as it is, which must end where the data begins and name every byte of them once."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert (8 + length) % 16 == 0
    found = json.loads(data[8:8 + length])
    spans = sorted(one["data_offsets"] for name, one in found.items() if name != "__metadata__")
    ends = [0, *(end for _, end in spans)]
    assert [start for start, _ in spans] == ends[:-1] and ends[-1] == len(data) - 8 - length, spans
    return found


class Dump:
    def __init__(self, path):
        self.header = header(path)
        assert self.header["__metadata__"]["format"] == "pt"
        self.about = json.loads(self.header["__metadata__"]["numsan_dump"])
        assert self.about["dump_version"] == 1
        self.tensors = load_file(path)
        self.op = self.about["op"]

    def value(self, item):
        """An argument or a result as Python has it."""
        kind = item["kind"]
        if kind == "none":
            return None
        if kind == "tensor":
            made = self.tensors[item["tensor"]]
            if item["dtype"].startswith("complex") and made.dtype == torch.uint8:
                made = made.view(getattr(torch, item["dtype"])).squeeze(-1)
            assert made.data_ptr() % made.element_size() == 0, item  # torch may end the process otherwise
            assert list(made.shape) == item["sizes"] and str(made.dtype) == "torch." + item["dtype"], item
            return made
        if kind == "list":
            return [self.value(one) for one in item["items"]]
        if kind in PLAIN:
            value = item["value"]
            return NUMBERS.get(value, value) if kind == "number" and isinstance(value, str) else value
        if kind in ("dtype", "layout", "memory_format"):
            return getattr(torch, item["value"])
        if kind == "device":
            return torch.device(item["value"])
        raise AssertionError(f"what is {item}?")

    def arguments(self, op=None):
        return {item["name"]: self.value(item) for item in (op or self.op)["args"]}

    def argument(self, name):
        return next(item for item in self.op["args"] if item["name"] == name)

    def run_again(self):
        """The results of the operator, called with what it was called with. One object stays one."""
        op = getattr(torch.ops.aten, self.op["name"].removeprefix("aten::"))
        op = getattr(op, self.op["overload"] or "default")
        if "rng.cpu" in self.tensors:
            assert self.about["rng"] == {"cpu": "rng.cpu"}
            torch.set_rng_state(self.tensors["rng.cpu"])
        given = self.arguments()
        names = [argument.name for argument in op._schema.arguments]
        assert list(given) == names
        only_by_name = {argument.name for argument in op._schema.arguments if argument.kwarg_only}
        made = op(*(given[name] for name in names if name not in only_by_name),
                  **{name: given[name] for name in only_by_name})
        if made is None:  # what it wrote
            made = [given[item["name"]] for item in self.op["results"]]
        return flat(made)

    def results(self):
        return flat([self.value(item) for item in self.op["results"]])


def flat(value):
    return [one for part in value for one in flat(part)] if isinstance(value, (list, tuple)) else [value]


def same_bits(one, other):
    """Equal bit for bit, NaN too."""
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(
        one.contiguous().view(-1).view(torch.uint8), other.contiguous().view(-1).view(torch.uint8))
