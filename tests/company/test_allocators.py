"""Other libraries of malloc, preloaded before numsan and after it."""
import ctypes.util
import pathlib

import pytest

import beside
import run_numsan

LIBRARIES = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2"}
PROGRAM = [run_numsan.PYTHON, beside.PROGRAMS / "plain.py"]


def installed(name):
    """The file name of a library that the loader finds; skips where there is none."""
    if not any((folder / LIBRARIES[name]).exists() for folder in
               map(pathlib.Path, ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"))) \
            and ctypes.util.find_library(name) is None:
        pytest.skip(f"{LIBRARIES[name]} is not installed")
    return LIBRARIES[name]


@pytest.mark.parametrize("name", ["jemalloc", *(pytest.param(name, marks=pytest.mark.nightly)
                                               for name in LIBRARIES if name != "jemalloc")])
def test_allocator(name, warm, tmp_path):
    library = installed(name)
    plain = run_numsan.run_plain_command(["env", f"LD_PRELOAD={library}", *PROGRAM], cwd=tmp_path,
                                         timeout=beside.TIMEOUT)
    for order in (f"{library}:{{numsan}}", f"{{numsan}}:{library}"):
        beside.check(plain, beside.run_with_preload(order, PROGRAM, tmp_path))
