"""CUPTI has room for one: a profiler gets it, whether it comes before numsan or after, and however it asks."""
import subprocess

import pytest

import run_numsan
from cuda_programs import CUDA, FAKES, VARIABLE, both, cc, environment, library, program, said_once

# A profiler: counts entries of cuLaunchKernel while it is subscribed.
PROFILER = r"""
#include <stdio.h>
int cuptiSubscribe(void** subscriber, void* callback, void* data);
int cuptiUnsubscribe(void* subscriber);
int cuptiEnableDomain(unsigned enable, void* subscriber, int domain);
int cuptiFinalize(void);
static void* subscriber;
static int seen;
static void callback(void* data, int domain, unsigned id, const void* launch) {
    (void)data; (void)domain;
    if (id == 307 && ((const int*)launch)[0] == 0) ++seen;
}
void profile(void) {
    const int result = cuptiSubscribe(&subscriber, callback, 0);
    printf("profiler: %d", result);
    printf(" %d\n", result ? -1 : cuptiEnableDomain(1, subscriber, 1));
}
void profiled(void) { printf("profiler: %d, %d launches\n", cuptiUnsubscribe(subscriber), seen); }
void finalize(void) { printf("profiler: %d\n", cuptiFinalize()); }
"""



@pytest.fixture
def profiled(cupti, tmp_path):
    """Compiles a main() that may call profile(), profiled() and finalize(), of a library that is linked to CUPTI."""
    library(tmp_path, "libprofiler.so", PROFILER, "-l:libcupti.so.13")

    def make(body):
        return program(tmp_path, CUDA + "void profile(void), profiled(void), finalize(void);\n"
                       "int main(void) { setvbuf(stdout, 0, _IOLBF, 0);" + body + "return 0; }",
                       f"-L{tmp_path}", "-l:libprofiler.so", f"-Wl,-rpath,{tmp_path}")
    return make


def test_a_profiler_that_comes_later_gets_cupti_and_gives_it_back(profiled, tmp_path):
    done = both(profiled("set_up(); run(1); profile(); run(5); profiled(); run(2);"), tmp_path)
    assert "profiler: 0 0\n64" not in done.stdout and "profiler: 0, 6 launches" in done.stdout, done.describe()
    coverage = done.report["coverage"]
    assert coverage["kernels"] == {"launches": 5, "by_name": {"scale(float*, int)": 3, "fill": 2}}, done.describe()
    assert "kernel launches while another tool had CUPTI: not counted" in coverage["blind_spots"]


def test_a_profiler_whose_cupti_only_it_can_see(profiled, tmp_path):
    """As a Python extension has it: opened locally, and the program itself knows nothing of CUPTI."""
    profiled("")
    opens = program(tmp_path, CUDA + r"""
        #include <dlfcn.h>
        int main(int argc, char** argv) {
            setvbuf(stdout, 0, _IOLBF, 0);
            set_up();
            void* profiler = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
            if (!profiler) return puts(dlerror());
            run(1);
            ((void (*)(void))dlsym(profiler, "profile"))();
            run(5);
            ((void (*)(void))dlsym(profiler, "profiled"))();
            run(2);
            return 0;
        }""", "-ldl", name="opens")
    done = both([opens, tmp_path / "libprofiler.so"], tmp_path)
    assert "profiler: 0, 6 launches" in done.stdout, done.describe()
    assert done.report["coverage"]["kernels"]["launches"] == 5, done.describe()


def test_a_profiler_that_stays(profiled, tmp_path):
    done = both(profiled("set_up(); run(1); profile(); run(5);"), tmp_path)
    coverage = done.report["coverage"]
    assert coverage["kernels"]["launches"] == 2
    assert "kernel launches since another tool took CUPTI: not counted" in coverage["blind_spots"]


def test_a_profiler_that_was_first_keeps_cupti(profiled, tmp_path):
    done = both(profiled("profile(); set_up(); run(5); profiled(); run(1);"), tmp_path)
    assert "profiler: 0, 6 launches" in done.stdout, done.describe()
    assert said_once(done, "kernels were not counted: CUPTI is taken by CUPTI for "), done.describe()


def test_a_profiler_that_is_refused_costs_us_nothing_for_long(profiled, tmp_path):
    done = both(profiled("set_up(); run(1); profile(); run(2);"), tmp_path, FAKE_CUPTI="cuptiSubscribe=35")
    assert "profiler: 35 -1" in done.stdout and done.report["coverage"]["kernels"]["launches"] == 5, done.describe()


def test_cupti_that_is_finalized_stays_so(profiled, tmp_path):
    done = both(profiled("set_up(); run(1); finalize(); run(2); profile(); run(3); profiled(); run(1);"), tmp_path)
    assert "profiler: 0\n" in done.stdout and "profiler: 0, 4 launches" in done.stdout, done.describe()
    assert done.report["coverage"]["kernels"]["launches"] == 2


def test_a_profiler_that_opens_cupti_by_itself_gets_it(cupti, tmp_path):
    """Its lookups pass us by: seen is only that it opens the library."""
    opens = program(tmp_path, CUDA + r"""
        #include <dlfcn.h>
        static void callback(void* d, int domain, unsigned id, const void* launch) {}
        int main(void) {
            void* subscriber;
            set_up();
            run(1);
            void* cupti = dlopen("libcupti.so.13", RTLD_NOW);
            int (*subscribe)(void**, void*, void*) = dlsym(cupti, "cuptiSubscribe");
            printf("subscribe: %d\n", subscribe(&subscriber, callback, 0));
            run(2);
            return 0;
        }""", "-ldl")
    done = both(opens, tmp_path)
    assert "subscribe: 0" in done.stdout and done.report["coverage"]["kernels"]["launches"] == 2, done.describe()


def test_no_profiler_and_no_cupti_is_an_error_as_before(cuda, tmp_path):
    """A caller that links to cuptiSubscribe weakly, in a process without CUPTI."""
    weak = cc(tmp_path / "weak", r"""
        #include <stdio.h>
        __attribute__((weak)) int cuptiSubscribe(void**, void*, void*);
        int main(void) {
            void* subscriber;
            return cuptiSubscribe ? cuptiSubscribe(&subscriber, 0, 0) == 0 : 0;
        }""")
    assert both(weak, tmp_path).returncode == 0


def test_doctor_says_whether_kernels_are_counted(cupti, tmp_path):
    def cupti_line(command, **more):
        done = subprocess.run([run_numsan.COMMAND, "doctor", "--", command], capture_output=True, text=True,
                              env=run_numsan.plain_environment(environment(**more)))
        return next(line for line in done.stdout.splitlines() if " cupti: " in line)
    assert cupti_line("/bin/true") == (f"ok       cupti: {FAKES}/libcupti.so.13: kernels are counted, "
                                       "unless a profiler has it")
    assert cupti_line("/bin/true", **{VARIABLE: "/opt/tool/injection.so"}) == (
        f"limited  cupti: kernels are not counted: {VARIABLE} names the library of another tool, "
        "/opt/tool/injection.so")
    assert cupti_line("/no/such/python3") == "ok       cupti: not used with torch"
