"""Makes dumps of calls that tests describe, in the format of docs/dumps.md, with results that torch gives now."""
import json

import torch

import replay_path  # noqa: F401
import op_calls
from dump_file import Call
from safetensors_file import DTYPES

NAMES = {dtype: name for name, dtype in DTYPES.items()}


def write_safetensors(path, tensors, metadata):
    """The format by hand: 8 bytes of length, a header in JSON, bytes."""
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        bits = bytes(values.contiguous().reshape(-1).view(torch.uint8).tolist()) if values.numel() else b""
        header[name] = {"dtype": NAMES[values.dtype], "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


class DumpMaker:
    """Describes values and keeps the tensors of one dump."""

    def __init__(self):
        self.tensors = {}

    def value(self, value, name="", key="arg"):
        row = {"name": name}
        if isinstance(value, torch.Tensor):
            tensor = f"{key}.{len(self.tensors)}"
            self.tensors[tensor] = value.detach().cpu()
            return {**row, "kind": "tensor", "tensor": tensor, "dtype": str(value.dtype).removeprefix("torch."),
                    "sizes": list(value.shape), "strides": list(value.stride()), "device": str(value.device),
                    "requires_grad": value.requires_grad}
        if isinstance(value, (list, tuple)):
            return {**row, "kind": "list", "items": [self.value(item, "", key) for item in value]}
        if value is None:
            return {**row, "kind": "none"}
        if isinstance(value, bool):
            return {**row, "kind": "bool", "value": value}
        if isinstance(value, complex):
            return {**row, "kind": "number", "value": {"re": value.real, "im": value.imag}}
        if isinstance(value, (int, float)):
            plain = value == value and abs(value) != float("inf")
            return {**row, "kind": "number", "value": value if plain else str(value)}
        kinds = {str: "string", torch.dtype: "dtype", torch.device: "device"}
        return {**row, "kind": kinds[type(value)], "value": str(value).removeprefix("torch.")}

    def call(self, name, args, overload="", results=None, key=""):
        """A call of `name` with `args` by the names of its schema."""
        operator = op_calls.find_operator(Call(name, overload, "", [], []))
        schema = operator._schema.arguments
        known = [argument.name for argument in schema]
        given = dict(zip(known, args)) if isinstance(args, (list, tuple)) else args
        rows = [self.value(given[wanted], wanted, f"{key}arg") for wanted in known if wanted in given]
        if results is None:
            positional = [given.get(a.name, a.default_value) for a in schema if not a.kwarg_only]
            keywords = {a.name: given[a.name] for a in schema if a.kwarg_only and a.name in given}
            with torch.no_grad():
                copies = [v.clone() if isinstance(v, torch.Tensor) and name.endswith("_") else v for v in positional]
                results = op_calls.call_operator(operator, copies, keywords)
        return {"name": name, "overload": overload, "schema": str(operator._schema), "args": rows,
                "results": [self.value(result, "", f"{key}result") for result in results]}


def make_dump(path, name, args, *, overload="", results=None, forward=None, finding=None, device="cpu", rng=None,
              **changed):
    """A dump at `path` of one call; `forward` is (name, args, overload). `changed` are fields of the description."""
    maker = DumpMaker()
    what = {"dump_version": 1, "numsan": "0.1.0", "torch": torch.__version__, "python": "3.11", "device": device,
            "threads": 1, "op": maker.call(name, args, overload, results),
            "forward": maker.call(*forward, key="forward.") if forward else None, "node": None, "rng": {},
            "finding": {"code": "NS101", "mechanism": "DOM", "kind": "nan", "phase": "forward", "title": "made up",
                        "help": [], **(finding or {})}}
    for kind, state in (rng or {}).items():
        maker.tensors[f"rng.{kind}"] = state
        what["rng"][kind] = f"rng.{kind}"
    what.update(changed)
    return write_safetensors(path, maker.tensors, {"format": "pt", "numsan_dump": json.dumps(what)})
