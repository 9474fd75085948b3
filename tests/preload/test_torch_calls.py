"""The functions of torch that libnumsan.so stands in for, in processes of other libraries that define or call them."""
import platform

import pytest

from test_preload import LIBRARY, ROOT, Setup, cc, run

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="only there are they stood in for")

SYMBOL = "_ZN2at16getStepCallbacksENS_11RecordScopeE"
SYMBOLS = ["_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE", SYMBOL,
           "_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE"]
CALLER = f"""
#include <stdio.h>
extern int {SYMBOL}(int, int, int);
int main(void) {{
    puts("begins"); fflush(stdout);
    printf("%d\\n", {SYMBOL}(1, 2, 3));
    printf("%d\\n", {SYMBOL}(4, 5, 6));
    return 3;
}}
"""

# Opens "+PATH" for its own callers and "*PATH" for everybody, closes the last with "-", and calls a function of it, or
# of what was opened before where a number tells which.
HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
    void* opened[8] = {0};
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const char* what = argv[i];
        if (*what == '+' || *what == '*') {
            opened[count++] = dlopen(what + 1, RTLD_NOW | (*what == '*' ? RTLD_GLOBAL : RTLD_LOCAL));
            if (!opened[count - 1]) { puts(dlerror()); return 1; }
        } else if (*what == '-') {
            dlclose(opened[--count]);
        } else {
            int at = count - 1;
            if (*what >= '0' && *what <= '9') at = *what++ - '0';
            int (*call)(void) = (int (*)(void))dlsym(opened[at], what);
            if (!call) { puts(dlerror()); return 2; }
            printf("%s %d\n", what, call());
            fflush(stdout);
        }
    }
    return 0;
}
"""


def calls(function):
    """C text of a function that calls all three, the first as an operator and as a node of autograd."""
    return "".join(f"extern int {symbol}(long, long);\n" for symbol in SYMBOLS) + f"""
int {function}(void) {{
    return {SYMBOLS[0]}(0, 0) + 10 * {SYMBOLS[0]}(0, 2) + 100 * {SYMBOL}(0, 7) + 1000 * {SYMBOLS[2]}(0, 0);
}}
"""


def torch(path, number, function, *arguments, more=""):
    """A library with functions by torch's names, which all return `number`, and one that calls them."""
    source = more + "".join(f"int {symbol}(long result, long scope) {{ return {number}; }}\n" for symbol in SYMBOLS)
    return cc(path, "-shared", "-fPIC", *arguments, source=source + calls(function))


def library(path, function, *arguments):
    return cc(path, "-shared", "-fPIC", *arguments, f"-Wl,-rpath,{path.parent}", source=calls(function))


@pytest.fixture
def setup(tmp_path):
    return Setup(tmp_path)


def same(setup, *actions):
    """What the host prints, with and without the library."""
    host = cc(setup.folder / "host", source=HOST)
    bare = run([host, *actions], cwd=setup.folder)
    assert bare.returncode == 0, bare
    for more in ({}, {"NUMSAN_DISABLE": "1"}):
        watched = setup.run(host, *actions, cwd=setup.folder, **more)
        assert (watched.returncode, watched.stdout, watched.stderr) == (0, bare.stdout, bare.stderr), more
    return bare.stdout.split("\n")[:-1]


def test_a_call_reaches_the_library_that_defines_it_with_its_arguments(tmp_path):
    own = cc(tmp_path / "libown.so", "-shared", "-fPIC",
             source=f"int {SYMBOL}(int a, int b, int c) {{ return 100 * a + 10 * b + c; }}")
    program = cc(tmp_path / "program", own, f"-Wl,-rpath,{tmp_path}", source=CALLER)
    for preload in (None, LIBRARY):
        done = run([program], preload)
        assert (done.returncode, done.stdout, done.stderr) == (3, "begins\n123\n456\n", "")


def test_a_call_of_what_no_library_defines_ends_as_the_dynamic_loader_ends_it(tmp_path):
    own = cc(tmp_path / "libown.so", "-shared", "-fPIC", source=f"int {SYMBOL}(void) {{ return 0; }}")
    program = cc(tmp_path / "program", own, "-Wl,-z,lazy", f"-Wl,-rpath,{tmp_path}", source=CALLER)
    cc(own, "-shared", "-fPIC", source="int another_version;")
    bare, watched = run([program]), run([program], LIBRARY)
    assert bare.returncode == watched.returncode == 127
    assert bare.stdout == watched.stdout == "begins\n"
    assert f"symbol lookup error: undefined symbol: {SYMBOL}" in watched.stderr
    assert bare.stderr.endswith(f"undefined symbol: {SYMBOL}\n")


def test_a_plugin_that_holds_a_torch_calls_its_own(setup, tmp_path):
    torch(tmp_path / "plugin.so", 2, "plugin")
    assert same(setup, "+./plugin.so", "plugin", "plugin") == ["plugin 2222"] * 2


# A pool: its destructor waits for a worker, which calls the plugin's torch once more.
POOL = r"""
#include <pthread.h>
#include <stdio.h>
int plugin(void);
static void* work(void* unused) { return printf("worker %d\n", plugin()) > 0 ? unused : NULL; }
__attribute__((destructor)) static void join_worker(void) {
    pthread_t worker;
    if (pthread_create(&worker, NULL, work, NULL) == 0) pthread_join(worker, NULL);
    fflush(stdout);
}
"""


def test_a_worker_that_a_destructor_waits_for_may_call(setup, tmp_path):
    """dlclose() holds the dynamic loader's lock meanwhile: what is known of a caller needs no look-up."""
    torch(tmp_path / "plugin.so", 2, "plugin", "-pthread", more=POOL)
    assert same(setup, "+./plugin.so", "plugin", "-") == ["plugin 2222", "worker 2222"]


@pytest.mark.parametrize("first", ["torch", "plugin"])
def test_torches_beside_each_other_are_called_by_their_own_callers(setup, tmp_path, first):
    torch(tmp_path / "libtorch_cpu.so", 1, "torch", "-Wl,-soname,libtorch_cpu.so")
    torch(tmp_path / "plugin.so", 2, "plugin")
    library(tmp_path / "extension.so", "extension", tmp_path / "libtorch_cpu.so")
    order = ["0torch", "1plugin"] if first == "torch" else ["1plugin", "0torch"]
    printed = same(setup, "+./libtorch_cpu.so", "+./plugin.so", *order, "+./extension.so", "extension", *order)
    assert sorted(printed) == ["extension 1111"] + ["plugin 2222"] * 2 + ["torch 1111"] * 2


def test_a_copy_by_another_name_is_called_by_who_needs_it(setup, tmp_path):
    torch(tmp_path / "libtorch_cpu.so", 1, "torch", "-Wl,-soname,libtorch_cpu.so")
    torch(tmp_path / "libtorch_cpu-1a2b.so", 3, "copy", "-Wl,-soname,libtorch_cpu-1a2b.so")
    library(tmp_path / "package.so", "package", tmp_path / "libtorch_cpu-1a2b.so")
    assert same(setup, "+./package.so", "package", "copy") == ["package 3333", "copy 3333"]
    printed = same(setup, "+./libtorch_cpu.so", "torch", "+./package.so", "package", "copy", "0torch")
    assert printed == ["torch 1111", "package 3333", "copy 3333", "torch 1111"]


def test_a_library_that_does_not_name_the_torch_it_needs_calls_that_of_what_opened_it(setup, tmp_path):
    library(tmp_path / "libhelper.so", "helper")
    torch(tmp_path / "plugin.so", 4, "plugin", "-Wl,--no-as-needed", tmp_path / "libhelper.so",
          f"-Wl,-rpath,{tmp_path}")
    assert same(setup, "+./plugin.so", "helper", "plugin") == ["helper 4444", "plugin 4444"]


def test_what_every_library_sees_comes_first_where_it_was_there_before(setup, tmp_path):
    torch(tmp_path / "everywhere.so", 5, "everywhere")
    torch(tmp_path / "plugin.so", 2, "plugin")
    assert same(setup, "*./everywhere.so", "+./plugin.so", "plugin") == ["plugin 5555"]
    assert same(setup, "+./plugin.so", "*./everywhere.so", "0plugin", "1everywhere") == [
        "plugin 2222", "everywhere 5555"]


def test_a_plugin_that_comes_to_lie_where_another_was_calls_its_own(setup, tmp_path):
    torch(tmp_path / "one.so", 2, "plugin")
    torch(tmp_path / "another.so", 3, "plugin", more="int before_them(int a) { return 3 * a; }\n")
    actions = ["+./one.so", "plugin", "-", "+./another.so", "plugin", "-"]
    assert same(setup, *actions, *actions) == ["plugin 2222", "plugin 3333"] * 2


CORE = f"""
#include "interpose/runtime/stub_abi.h"
static int stand_in(long result, long scope) {{ return 9; }}
__attribute__((visibility("default"))) int numsan_core_attach(const struct numsan_stub_api* stub) {{
    struct numsan_torch_calls own, ours = {{(void*)stand_in, (void*)stand_in, (void*)stand_in, 0}};
    return !stub->replace_torch_calls(&ours, &own);
}}
"""


def test_stand_ins_are_called_by_callers_of_the_torch_they_are_for_only(setup, tmp_path):
    cc(setup.core, "-shared", "-fPIC", f"-I{ROOT}", source=CORE)
    torch(tmp_path / "libtorch_cpu.so", 1, "torch", "-Wl,-soname,libtorch_cpu.so")
    torch(tmp_path / "plugin.so", 2, "plugin")
    library(tmp_path / "extension.so", "extension", tmp_path / "libtorch_cpu.so")
    host = cc(tmp_path / "host", source=HOST)
    done = setup.run(host, "+./plugin.so", "plugin", f"+{tmp_path}/libtorch_cpu.so", "torch", "0plugin",
                     "+./extension.so", "extension", "0plugin", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["plugin 2222", "torch 9991", "plugin 2222", "extension 9991", "plugin 2222"]
