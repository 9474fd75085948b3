"""A dump: a safetensors file whose metadata describe a call of an operator. See docs/dumps.md for the format.

Everything that a later part relies on is checked here, because a dump may come from anywhere.
"""
import math
from dataclasses import dataclass, field

import torch

from safetensors_file import DumpError, START, SafetensorsFile, is_count, parsed, shown

VERSION = 1
KEY = "numsan_dump"
PLAIN_KINDS = {"bool": bool, "string": str, "dtype": str, "device": str, "memory_format": (str, int),
               "layout": (str, int), "generator": (str, int, type(None)), "left_out": (str, type(None))}


@dataclass
class Argument:
    """What an operator was given or wrote. `value` is what the kind says: a number, a list of Arguments, a word."""

    kind: str
    name: str = ""
    value: object = None
    tensor: str = ""  # its name in the file
    dtype: torch.dtype | None = None
    sizes: tuple = ()
    strides: tuple = ()
    device: str = "cpu"
    requires_grad: bool = False
    same_as: str = ""  # another tensor of the file that was this very one
    why: str = ""  # of left_out


@dataclass
class Call:
    """A call of an operator, as it was dumped."""

    name: str  # aten::log
    overload: str
    schema: str
    args: list
    results: list

    def __str__(self):
        return self.name + (f".{self.overload}" if self.overload else "")


@dataclass
class Dump:
    path: str
    file: SafetensorsFile
    op: Call
    forward: Call | None
    node: str
    device: str
    torch_version: str
    threads: int
    rng: dict  # kind of device -> name of its generator's state
    finding: dict = field(default_factory=dict)

    def tensor(self, argument):
        """The values of an argument, contiguous, with its own type."""
        values = self.file.tensor(argument.tensor)
        if values.dtype != argument.dtype:  # a type that the format has no name for travels as bytes
            values = values.reshape(-1).view(argument.dtype)
        return values.reshape(argument.sizes)


class _Reader:
    """Walks the description; every complaint says where in it the fault is."""

    def __init__(self, file):
        self.file = file

    def fault(self, place, expected, found):
        return DumpError(self.file.path, START, f"{expected} at {KEY}{place}", shown(found))

    def get(self, where, place, key, kind, initial=None):
        value = where.get(key, initial)
        if value is initial and key not in where and initial is not None:
            return initial
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            names = {dict: "an object", list: "a list", str: "a string", int: "an integer", bool: "true or false"}
            raise self.fault(f"/{place}/{key}".replace("//", "/"), names[kind], value)
        return value

    def call(self, where, place):
        args = self.get(where, place, "args", list)
        results = self.get(where, place, "results", list, [])
        name = self.get(where, place, "name", str)
        return Call(name, self.get(where, place, "overload", str, ""), self.get(where, place, "schema", str, ""),
                    [self.argument(arg, f"{place}/args/{i}") for i, arg in enumerate(args)],
                    [self.argument(result, f"{place}/results/{i}") for i, result in enumerate(results)])

    def argument(self, where, place, depth=0):
        if not isinstance(where, dict):
            raise self.fault(f"/{place}", "an object", where)
        if depth > 4:
            raise self.fault(f"/{place}", "lists that are nested less deeply", "one more")
        kind = self.get(where, place, "kind", str)
        argument = Argument(kind, self.get(where, place, "name", str, ""))
        if kind == "tensor":
            return self.tensor(argument, where, place)
        if kind == "number":
            argument.value = self.number(where.get("value"), place)
        elif kind == "list":
            items = self.get(where, place, "items", list)
            argument.value = [self.argument(item, f"{place}/items/{i}", depth + 1) for i, item in enumerate(items)]
        elif kind in PLAIN_KINDS:
            argument.value = where.get("value")
            argument.why = self.get(where, place, "why", str, "")
            if not isinstance(argument.value, PLAIN_KINDS[kind]) and kind not in ("left_out", "generator"):
                raise self.fault(f"/{place}/value", f"a value of kind {kind}", argument.value)
            if kind == "dtype":
                argument.value = self.dtype(argument.value, f"{place}/value")
        elif kind != "none":
            raise self.fault(f"/{place}/kind", "a kind of argument that this version knows", kind)
        return argument

    def number(self, value, place):
        if isinstance(value, dict) and set(value) == {"re", "im"}:
            return complex(self.number(value["re"], place), self.number(value["im"], place))
        if value in ("inf", "-inf", "nan"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fault(f"/{place}/value", "a number", value)
        if isinstance(value, int) and not -2**63 <= value < 2**64 or isinstance(value, float) and math.isinf(value):
            raise self.fault(f"/{place}/value", "a number of 64 bits", value)
        return value

    def dtype(self, name, place):
        dtype = getattr(torch, name.removeprefix("torch."), None) if isinstance(name, str) else None
        if not isinstance(dtype, torch.dtype):
            raise self.fault(f"/{place}", "an element type of this torch", name)
        return dtype

    def tensor(self, argument, where, place):
        argument.tensor = self.get(where, place, "tensor", str)
        entry = self.file.entries.get(argument.tensor)
        if entry is None:
            raise self.fault(f"/{place}/tensor", "the name of a tensor in the file", argument.tensor)
        argument.dtype = self.dtype(where.get("dtype"), f"{place}/dtype") if "dtype" in where else entry.dtype
        sizes = self.get(where, place, "sizes", list, list(entry.sizes))
        strides = self.get(where, place, "strides", list, [])
        if not all(map(is_count, sizes)) or math.prod(sizes) * argument.dtype.itemsize != entry.end - entry.begin:
            raise self.fault(f"/{place}/sizes", f"sizes of {entry.end - entry.begin} bytes of {argument.dtype}", sizes)
        if not all(map(is_count, strides)) or (strides and len(strides) != len(sizes)):
            raise self.fault(f"/{place}/strides", f"{len(sizes)} strides", strides)
        argument.sizes, argument.strides = tuple(sizes), tuple(strides)
        argument.device = self.get(where, place, "device", str, "cpu")
        argument.requires_grad = self.get(where, place, "requires_grad", bool, False)
        argument.same_as = self.get(where, place, "same_as", str, "")
        return argument


def read_dump(path):
    """The dump at `path`; DumpError says why there is none."""
    file = SafetensorsFile(path)
    text = file.metadata.get(KEY)
    if text is None:
        raise DumpError(file.path, START, f"`{KEY}` in `__metadata__`", "a safetensors file that numsan did not write")
    reader = _Reader(file)
    try:
        where = parsed(text)
    except ValueError as error:
        raise reader.fault("", "JSON", str(error)) from None
    if not isinstance(where, dict):
        raise reader.fault("", "an object", where)
    version = reader.get(where, "", "dump_version", int)
    if version != VERSION:
        raise reader.fault("/dump_version", f"version {VERSION}; another numsan wrote this", version)
    forward = where.get("forward")
    if forward is not None and not isinstance(forward, dict):
        raise reader.fault("/forward", "an object or null", forward)
    rng = reader.get(where, "", "rng", dict, {})
    for kind, name in rng.items():
        if name not in file.entries:
            raise reader.fault(f"/rng/{kind}", "the name of a tensor in the file", name)
    threads = where.get("threads")
    return Dump(file.path, file, reader.call(reader.get(where, "", "op", dict), "op"),
                reader.call(forward, "forward") if forward else None, str(where.get("node") or ""),
                reader.get(where, "", "device", str, "cpu"), str(where.get("torch") or ""),
                threads if is_count(threads) else 0, rng, reader.get(where, "", "finding", dict, {}))
