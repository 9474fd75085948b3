"""What the built libraries ask of a host program, and what they show it: nothing that could meet the program's own."""
import re
import subprocess

import pytest
import run_numsan

CORE = run_numsan.BUILD / "lib/libnumsan_core.so"
# What every Linux with glibc has. The C++ library is the core's own: the program may bring another.
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def tool(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def dynamic(library, tag):
    """Values of a tag in the dynamic section."""
    return re.findall(rf"\({tag}\).*?\[(.*?)\]$", tool("readelf", "-dW", library), re.M)


def exported(library):
    return {line.split()[-1] for line in tool("nm", "-D", "--defined-only", library).splitlines()}


def test_core_shows_its_entry_points_only(build):
    assert exported(CORE) == {"numsan_core_attach", "numsan_core_cuda", "numsan_adapter_origin", "numsan_python_stacks",
                              "numsan_scope", "numsan_decide", "numsan_report"}


def test_core_needs_libc_and_its_unwinder_only(build):
    """Not an unwinder of its own: tests/interpose/python/ended_look_up.py says what would come of that."""
    needed = set(dynamic(CORE, "NEEDED"))
    assert needed - LIBC == {"libgcc_s.so.1"}, needed


def test_core_is_never_unloaded(build):
    flags = re.findall(r"\(FLAGS_1\).*", tool("readelf", "-dW", CORE))
    assert len(flags) == 1 and "NODELETE" in flags[0], flags


def test_core_and_stub_look_for_libraries_nowhere(build):
    for library in (CORE, run_numsan.LIBRARY):
        assert dynamic(library, "RUNPATH") == dynamic(library, "RPATH") == [], library


def test_core_asks_for_no_writable_code(build):
    """An executable stack would make the program's stack executable, too."""
    for library in (CORE, run_numsan.LIBRARY):
        stack = re.findall(r"GNU_STACK.*", tool("readelf", "-lW", library))
        assert len(stack) == 1 and "RWE" not in stack[0], (library, stack)
        assert "TEXTREL" not in tool("readelf", "-dW", library), library


@pytest.fixture(scope="module")
def adapter(warm):
    """The newest adapter in the cache: the one that `warm` used, or compiled."""
    found = sorted(run_numsan.CACHE.glob("libnumsan_torch-*.so"), key=lambda path: path.stat().st_mtime)
    found = [path for path in found if "inductor" not in path.parts and "triton" not in path.parts]
    assert found, f"{run_numsan.CACHE} has no adapter"
    return found[-1]


def test_adapter_looks_for_torch_nowhere(adapter):
    """It binds to the torch that the program has loaded, which may have moved since, and never loads another."""
    assert dynamic(adapter, "RUNPATH") == dynamic(adapter, "RPATH") == []


def test_adapter_needs_no_library_of_cuda(adapter):
    needed = dynamic(adapter, "NEEDED")
    assert not [name for name in needed if re.match(r"lib(cuda|cudart|cupti|nv|torch_cuda|c10_cuda)", name)], needed
