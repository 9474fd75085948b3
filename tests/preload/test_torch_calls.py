"""The functions of torch that libnumsan.so stands in for, in processes of other libraries that define or call them."""
import platform

import pytest

from test_preload import LIBRARY, cc, run

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="only there are they stood in for")

SYMBOL = "_ZN2at16getStepCallbacksENS_11RecordScopeE"
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
