"""Builds the library that walk.py drives."""
import pathlib
import re
import subprocess

import pytest

import run_numsan

ROOT = pathlib.Path(__file__).resolve().parents[3]
GENERATED = run_numsan.BUILD / "generated"
LAYOUTS = "interpose/python/layout/layouts.def"


# Those that read layouts.def, and the others, which the library with wrong layouts shares.
READS_LAYOUTS = ("frames", "layout/layout")
OTHERS = ("api/api", "api_walk", "layout/layout_check", "api/gate", "names/functions_in", "names/kept_sources",
          "names/name_finder", "names/live_names", "names/object_walk", "names/tensor_fields", "names/variables",
          "api/own_thread")


def compiled(folder, sources, before=()):
    """Objects of the sources, in `folder`. Headers and tables in the folders `before` stand in for those of the
    checkout."""
    flags = ["-std=c++20", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
             *(f"-I{place}" for place in (*before, ROOT, GENERATED))]
    subprocess.run(["g++", *flags, "-c", *map(str, sources)], cwd=folder, check=True)
    return [folder / f"{source.stem}.o" for source in sources]


def sources_of(names):
    return [ROOT / f"interpose/python/{name}.cpp" for name in names]


def linked(folder, objects):
    path = folder / "libstacks.so"
    subprocess.run(["g++", "-shared", "-static-libstdc++", *map(str, objects), "-ldl", "-o", str(path)], check=True)
    return path


@pytest.fixture(scope="session")
def other_objects(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("others"), [
        *sources_of(OTHERS), ROOT / "host/stacks/stack_table.cpp", ROOT / "tests/interpose/python/stacks_library.cpp"])


@pytest.fixture(scope="session")
def stacks_library(other_objects, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stacks")
    return linked(folder, [*compiled(folder, sources_of(READS_LAYOUTS)), *other_objects])


# Positions in the rows of layouts.def. What each wrong field then holds is another pointer, so reading it is harmless.
ROWS = {"LAYOUT": {"instruction": 6, "name": 10}, "PUBLISHED": {"instruction": 4, "name": 8}}


@pytest.fixture(scope="session", params=["instruction", "name"])
def library_with_wrong_layouts(request, other_objects, tmp_path_factory):
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
    return linked(folder, [*compiled(folder, sources_of(READS_LAYOUTS), [folder]), *other_objects])
