"""Reads a safetensors file of any origin with torch alone: a header of JSON, then the tensors' bytes.

What is wrong with a file is a DumpError that names the file, the byte and what was expected there.
"""
import json
import math
import os
from dataclasses import dataclass

import torch

LONGEST_HEADER = 100_000_000  # bytes; the format allows no more
MOST_DIMENSIONS = 64  # of a tensor of torch
START = 8  # bytes of the header's length, a little-endian integer

DTYPES = {name: getattr(torch, dtype) for name, dtype in {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64", "C128": "complex128",
}.items() if hasattr(torch, dtype)}


class DumpError(Exception):
    """Why a file is no dump that can be replayed: one line, the file's name first."""

    def __init__(self, path, byte, expected, found):
        place = path if byte is None else f"{path}: byte {byte}"
        super().__init__(f"{place}: expected {expected}, found {found}")


@dataclass(frozen=True)
class Entry:
    """Where a tensor lies: `begin` and `end` are bytes of the file."""

    dtype: torch.dtype
    sizes: tuple
    begin: int
    end: int


def shown(value, most=60):
    """A value of the file for a message: one line, no control characters, not long."""
    text = json.dumps(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[:most - 3] + "..."


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _no_constant(name):
    raise ValueError(f"{name} is no JSON")


def parsed(text):
    """JSON whose objects have each key once. ValueError says what is wrong."""
    def once(pairs):
        values = dict(pairs)
        if len(values) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return values

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class SafetensorsFile:
    """The header of a file, checked; tensors are read when they are asked for."""

    def __init__(self, path):
        self.path = str(path)
        try:
            self.size = os.stat(path).st_size
            with open(path, "rb") as file:
                start = file.read(START)
                length = int.from_bytes(start, "little")
                self._check_length(start, length)
                text = file.read(length)
        except OSError as error:
            raise DumpError(self.path, None, "a file that can be read", error.strerror or str(error)) from None
        self.data = START + length
        self.metadata, self.entries = self._read_header(text)
        self._check_memory()

    def _check_length(self, start, length):
        if len(start) < START:
            raise DumpError(self.path, 0, "8 bytes with the header's length", f"{len(start)} bytes in all")
        if length > LONGEST_HEADER:
            raise DumpError(self.path, 0, f"a header of at most {LONGEST_HEADER} bytes", f"a length of {length}")
        if START + length > self.size:
            raise DumpError(self.path, 0, f"a header of {length} bytes", f"{self.size - START} bytes after its length")

    def _read_header(self, text):
        try:
            header = parsed(text.decode())
        except UnicodeDecodeError as error:
            raise DumpError(self.path, START + error.start, "a header in UTF-8", "other bytes") from None
        except json.JSONDecodeError as error:
            byte = START + len(text.decode()[:error.pos].encode())
            raise DumpError(self.path, byte, "a header in JSON", error.msg) from None
        except ValueError as error:
            raise DumpError(self.path, START, "a header in JSON", str(error)) from None
        if not isinstance(header, dict):
            raise DumpError(self.path, START, "a JSON object", shown(header))
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise DumpError(self.path, START, "`__metadata__` with strings", shown(metadata))
        entries = {name: self._entry(name, row) for name, row in header.items()}
        end = self.data
        for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
            if entry.begin != end:
                raise DumpError(self.path, entry.begin, f"the bytes of {shown(name)} at byte {end}",
                                "a gap or an overlap")
            end = entry.end
        if end != self.size:
            raise DumpError(self.path, min(end, self.size), f"{end} bytes in all", f"{self.size}")
        return metadata, entries

    def _entry(self, name, row):
        def fault(expected, found):
            return DumpError(self.path, START, f"{expected} of tensor {shown(name)}", shown(found))

        if not isinstance(row, dict):
            raise fault("an object for the place", row)
        dtype = DTYPES.get(row.get("dtype")) if isinstance(row.get("dtype"), str) else None
        if dtype is None:
            raise fault("an element type that torch has", row.get("dtype"))
        sizes, offsets = row.get("shape"), row.get("data_offsets")
        if not isinstance(sizes, list) or not all(map(is_count, sizes)) or len(sizes) > MOST_DIMENSIONS:
            raise fault("sizes", sizes)
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_count, offsets)):
            raise fault("two offsets", offsets)
        bytes_of_it = math.prod(sizes) * dtype.itemsize
        if offsets[1] - offsets[0] != bytes_of_it:
            raise fault(f"{bytes_of_it} bytes", offsets)
        if self.data + offsets[1] > self.size:
            raise DumpError(self.path, self.size, f"tensor {shown(name)} up to byte {self.data + offsets[1]}",
                            "the end of the file")
        return Entry(dtype, tuple(sizes), self.data + offsets[0], self.data + offsets[1])

    def _check_memory(self):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if self.size - self.data > memory:
            raise DumpError(self.path, self.data, f"tensors that fit into this machine's {memory} bytes",
                            f"{self.size - self.data} bytes of them")

    def tensor(self, name):
        """A tensor of its own memory, contiguous, on the CPU."""
        entry = self.entries[name]
        with open(self.path, "rb") as file:
            file.seek(entry.begin)
            data = bytearray(file.read(entry.end - entry.begin))
        if len(data) != entry.end - entry.begin:
            raise DumpError(self.path, entry.begin + len(data), f"the bytes of {shown(name)}", "the end of the file")
        if not data:
            return torch.empty(entry.sizes, dtype=entry.dtype)
        return torch.frombuffer(data, dtype=torch.uint8).view(entry.dtype).reshape(entry.sizes)
