"""Files of any origin: what is wrong with one is said with its byte, and nothing else is thrown."""
import json
import random

import pytest
import torch

import replay_path  # noqa: F401
import dump_maker
from dump_file import read_dump
from safetensors_file import DumpError, SafetensorsFile


def file_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"x": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


BAD_FILES = {
    "empty": (b"", "byte 0: expected 8 bytes with the header's length, found 0 bytes in all"),
    "short": (b"1234", "byte 0: expected 8 bytes with the header's length, found 4 bytes in all"),
    "huge_header": (file_of(b"{}", length=2**40), "byte 0: expected a header of at most 100000000 bytes"),
    "cut_header": (file_of(b"{}", length=50), "byte 0: expected a header of 50 bytes, found 2 bytes after its length"),
    "no_text": (file_of(b"\xff\xff"), "byte 8: expected a header in UTF-8"),
    "no_json": (file_of(b'{"x": 1, ]'), "byte 17: expected a header in JSON"),
    "twice": (file_of(b'{"x": 1, "x": 2}'), "byte 8: expected a header in JSON, found a key stands twice"),
    "no_number": (file_of(b'{"x": NaN}'), "byte 8: expected a header in JSON, found NaN is no JSON"),
    "deep": (file_of(b"[" * 200000), "byte 8: expected a header in JSON"),
    "no_object": (file_of([1]), "byte 8: expected a JSON object"),
    "metadata": (file_of({"__metadata__": {"a": 1}}), "byte 8: expected `__metadata__` with strings"),
    "no_entry": (file_of({"x": 5}), "byte 8: expected an object for the place of tensor 'x'"),
    "dtype": (file_of(entry(dtype="F13")), "byte 8: expected an element type that torch has of tensor 'x'"),
    "sizes": (file_of(entry(shape=(-2,))), "byte 8: expected sizes of tensor 'x'"),
    "many_sizes": (file_of(entry(shape=(1,) * 100, offsets=(0, 4))), "byte 8: expected sizes of tensor 'x'"),
    "large_size": (file_of(entry(shape=(2**62, 2**62))), "byte 8: expected"),
    "offsets": (file_of(entry(offsets=(0, 8, 9))), "byte 8: expected two offsets of tensor 'x'"),
    "bytes": (file_of(entry(offsets=(0, 4))), "byte 8: expected 8 bytes of tensor 'x', found [0, 4]"),
    "cut_data": (file_of(entry(), b"1234"), "expected tensor 'x' up to byte"),
    "more_data": (file_of(entry(), b"123456789"), "bytes in all, found"),
    "gap": (file_of(entry(offsets=(4, 12)), b"1" * 12), "expected the bytes of 'x' at byte"),
    "overlap": (file_of({**entry(), "y": entry(offsets=(4, 12))["x"]}, b"1" * 12), "a gap or an overlap"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_what_is_wrong_is_said(name, tmp_path):
    data, said = BAD_FILES[name]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(DumpError) as error:
        SafetensorsFile(path)
    assert str(error.value).startswith(str(path)) and said in str(error.value), error.value
    assert "\n" not in str(error.value)


def test_a_folder_and_a_missing_file(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(DumpError, match="expected a file that can be read"):
            SafetensorsFile(path)


def test_more_tensors_than_memory(tmp_path):
    """The file is sparse: it takes no space, and is refused before a tensor is read."""
    path, size = tmp_path / "large.safetensors", 2**50
    start = file_of({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
    with open(path, "wb") as file:
        file.write(start)
        try:
            file.truncate(len(start) + size)
        except OSError:
            file.truncate(len(start) + 2**43)  # what the file system takes at most: the end of the file comes too soon
    with pytest.raises(DumpError, match="this machine's|up to byte"):
        SafetensorsFile(path)


def test_what_another_library_wrote(tmp_path):
    from safetensors.torch import save_file
    tensors = {"a": torch.rand(3, 4), "b": torch.arange(5), "c": torch.rand(2).to(torch.bfloat16), "d": torch.zeros(0)}
    save_file(tensors, tmp_path / "a.safetensors")
    file = SafetensorsFile(tmp_path / "a.safetensors")
    assert all(torch.equal(file.tensor(name), values) for name, values in tensors.items())


def test_a_cut_or_changed_dump_throws_nothing_else(tmp_path):
    good = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::mul", [torch.rand(3), torch.rand(3)],
                                overload="Tensor").read_bytes()
    path, source = tmp_path / "b.safetensors", random.Random(5)
    for i in range(600):
        data = bytearray(good[:source.randrange(len(good))] if i % 2 else good)
        for _ in range(source.randrange(1, 4)):
            if data:
                data[source.randrange(len(data))] = source.randrange(256)
        path.write_bytes(data)
        try:
            read_dump(path)
        except DumpError as error:
            assert str(path) in str(error)
