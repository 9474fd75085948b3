"""NVTX's way in: named when torch is there, open when a copy of NVTX is used for the first time."""
import pytest

from test_preload import cc, run, setup  # noqa: F401  setup is a fixture

VARIABLE = "NVTX_INJECTION64_PATH"

# Does what a copy of NVTX does at its first call (nvtxDetail/nvtxInit.h), before or after torch has been loaded.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int callbacks[4];
static const void* export_table(unsigned table) { return table == 1 ? callbacks : 0; }
static void first_call(void) {
    const char* path = getenv("NVTX_INJECTION64_PATH");
    void* library = path ? dlopen(path, RTLD_LAZY) : 0;
    int (*start)(const void* (*)(unsigned)) = library ? dlsym(library, "InitializeInjectionNvtx2") : 0;
    printf("%s: %d\n", path ? path : "none", start ? start(export_table) : -1);
    if (start && start(0) != 0) exit(4);
}
int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "nvtx") == 0) first_call();
        else if (strcmp(argv[i], "env") == 0) for (char** e = environ; *e; e++) puts(*e);
        else if (!dlopen(argv[i], RTLD_NOW)) return 3;
    }
    return 0;
}
"""


@pytest.fixture
def program(tmp_path):
    return cc(tmp_path / "program", "-ldl", source=PROGRAM)


def test_a_copy_that_is_used_after_torch_was_loaded_is_heard(setup, program):  # noqa: F811
    done = setup.run(program, "nvtx", setup.extension, "nvtx", "nvtx")
    assert done.stdout.splitlines() == ["none: -1", f"{setup.preload}: 1", f"{setup.preload}: 1"]
    assert (done.returncode, done.stderr) == (0, "")
    assert setup.trace() == [f"attach 1 1 {setup.lib}", "nvtx", "nvtx"]


def test_without_torch_the_environment_stays(setup, program):  # noqa: F811
    assert setup.run(program, "nvtx").stdout == "none: -1\n"
    assert setup.run("env").stdout.count(VARIABLE) == 0


def test_another_tool_keeps_nvtx(setup, program, tmp_path):  # noqa: F811
    theirs = cc(tmp_path / "theirs.so", "-shared", "-fPIC",
                source="int InitializeInjectionNvtx2(const void* (*t)(unsigned)) { return t ? 7 : 0; }")
    done = setup.run(program, setup.extension, "nvtx", **{VARIABLE: theirs})
    assert (done.returncode, done.stdout) == (0, f"{theirs}: 7\n")
    assert setup.trace() == [f"attach 1 1 {setup.lib}"]
    assert setup.run(program, setup.extension, "nvtx", **{VARIABLE: ""}).stdout == f"{setup.preload}: 1\n"


def test_what_a_parent_left_is_told_that_there_is_no_tool(setup, program):  # noqa: F811
    """In a child without the preload, one that has not loaded torch, and one whose parent had another copy of us."""
    assert run([program, "nvtx"], **{VARIABLE: setup.preload}).stdout == f"{setup.preload}: 0\n"
    assert setup.run(program, "nvtx", **{VARIABLE: setup.preload}).stdout == f"{setup.preload}: 0\n"
    assert setup.trace() == []
    done = setup.run(program, setup.extension, "nvtx", **{VARIABLE: "/elsewhere/libnumsan.so"})
    assert done.stdout == f"{setup.preload}: 1\n"


def test_the_rest_of_the_environment_stays(setup, program):  # noqa: F811
    """In its order, with the variable once, whether it was there or not."""
    for before in ({}, {VARIABLE: "/elsewhere/libnumsan.so"}):
        many = {f"OTHER_{i}": "x" for i in range(700)}
        done = setup.run(program, "env", setup.extension, "env", **many, **before)
        lines = [line for line in done.stdout.splitlines() if "=" in line]
        old, new = lines[:len(lines) // 2], lines[len(lines) // 2:]
        if not before:
            old, new = lines[:(len(lines) - 1) // 2], lines[(len(lines) - 1) // 2:]
        kept = [line for line in old if not line.startswith(VARIABLE)]
        assert new == [*kept, f"{VARIABLE}={setup.preload}"] and len(kept) > 700, done
