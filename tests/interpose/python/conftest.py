"""Builds the library that walk.py drives."""
import pathlib
import re
import subprocess

import pytest

import run_numsan

ROOT = pathlib.Path(__file__).resolve().parents[3]
GENERATED = run_numsan.BUILD / "generated"
LAYOUTS = "interpose/python/layout/layouts.def"


def build(path, before=()):
    """The library at `path`. Headers and tables in the folders `before` stand in for those of the checkout."""
    names = ("api/api", "api_walk", "layout/layout", "layout/layout_check", "frames", "api/gate",
             "names/functions_in", "names/kept_sources", "names/name_finder", "names/live_names", "names/object_walk",
             "names/tensor_fields", "names/variables", "api/own_thread")
    sources = [*(ROOT / f"interpose/python/{name}.cpp" for name in names), ROOT / "host/stacks/stack_table.cpp",
               ROOT / "tests/interpose/python/stacks_library.cpp"]
    folders = [f"-I{folder}" for folder in (*before, ROOT, GENERATED)]
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-static-libstdc++", "-Wall",
                    "-Wextra", "-Werror", *folders, *map(str, sources), "-ldl", "-o", str(path)], check=True)
    return path


@pytest.fixture(scope="session")
def stacks_library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("stacks") / "libstacks.so")


# Positions in the rows of layouts.def. What each wrong field then holds is another pointer, so reading it is harmless.
ROWS = {"LAYOUT": {"instruction": 6, "name": 10}, "PUBLISHED": {"instruction": 4, "name": 8}}


@pytest.fixture(scope="session", params=["instruction", "name"])
def library_with_wrong_layouts(request, tmp_path_factory):
    """As stacks_library, but in every layout one field has the offset of the field before it."""
    def wrong(row):
        fields = row[2].split(",")
        field = ROWS[row[1]][request.param]
        fields[field] = fields[field - 1]
        return f"NUMSAN_PYTHON_{row[1]}({','.join(fields)})"

    folder = tmp_path_factory.mktemp("wrong_layouts")
    text, rows = re.subn(r"^NUMSAN_PYTHON_(LAYOUT|PUBLISHED)\((.*)\)$", wrong, (ROOT / LAYOUTS).read_text(), flags=re.M)
    assert rows == 5, f"{LAYOUTS} has {rows} layouts: say here which of their fields are made wrong"
    (folder / LAYOUTS).parent.mkdir(parents=True)
    (folder / LAYOUTS).write_text(text)
    return build(folder / "libstacks.so", [folder])
