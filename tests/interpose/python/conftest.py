"""Builds the library that walk.py drives."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def stacks_library(tmp_path_factory):
    path = tmp_path_factory.mktemp("stacks") / "libstacks.so"
    names = ("api", "api_walk", "layout", "frames", "gate", "names")
    sources = [*(ROOT / f"interpose/python/{name}.cpp" for name in names), ROOT / "host/stacks/stack_table.cpp",
               ROOT / "tests/interpose/python/stacks_library.cpp"]
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra",
                    "-Werror", f"-I{ROOT}", *map(str, sources), "-ldl", "-o", str(path)], check=True)
    return path
