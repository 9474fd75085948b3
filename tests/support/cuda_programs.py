"""C programs on the fake CUDA driver: how they are made, and run without and with numsan."""
import os
import re
import subprocess

import run_numsan

FAKES = run_numsan.BUILD / "fakes"
PROGRAMS = run_numsan.BUILD / "programs_cuda"  # those that nvcc built
VARIABLE = "CUDA_INJECTION64_PATH"

# What a program does with the driver: run(n) launches one kernel n times, then reads what it made.
CUDA = r"""
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void _Z5scalePfi(void* data) { ((float*)data)[0] *= 2; }
void fill(void* data) { ((float*)data)[0] = 1; }
int fake_cuda_calls_inside_injection(void);
#define TRY(call) do { int e_ = (call); if (e_) { printf("%s: %d\n", #call, e_); exit(3); } } while (0)
static CUcontext context;
static CUfunction scale, ones;
static CUdeviceptr data;
static void set_up(void) {
    CUmodule module;
    TRY(cuInit(0));
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, "host functions"));
    TRY(cuModuleGetFunction(&scale, module, "_Z5scalePfi"));
    TRY(cuModuleGetFunction(&ones, module, "fill"));
    TRY(cuMemAlloc(&data, 4));
}
static void launch(CUfunction kernel) {
    void* arguments[] = {&data};
    TRY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0));
}
static void run(int times) {
    float value;
    launch(ones);
    for (int i = 0; i < times; i++) launch(scale);
    TRY(cuMemcpyDtoHAsync(&value, data, sizeof value, 0));
    TRY(cuCtxSynchronize());
    printf("%g\n", value);
    fflush(stdout);
}
"""

def cache_value(name):
    text = (run_numsan.BUILD / "CMakeCache.txt").read_text()
    found = re.search(rf"^{name}:\w+=(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def need_programs(names):
    """Skips the test where the build cannot have these of tests/programs_cuda; fails it where they are missing."""
    import pytest  # which a machine with a GPU may be without
    if cache_value("NUMSAN_CUDA") != "ON":
        pytest.skip("no nvcc, or NUMSAN_CUDA is off: the CUDA programs are not built")
    if not (FAKES / "libcudart.so.13").exists() or not (FAKES / "libcublas.so.13").exists():
        pytest.skip("no fake CUDA runtime or cuBLAS was built: their headers were not found")
    if not (FAKES / "libcupti.so.13").exists():
        pytest.skip("no fake CUPTI was built: its headers were not found")
    for name in names:
        if not (PROGRAMS / name).exists():
            pytest.fail(f"{PROGRAMS / name} is missing: build first (scripts/build)", pytrace=False)


def cc(output, source, *arguments):
    file = output.with_suffix(".c")
    file.write_text(source)
    headers = cache_value("NUMSAN_FAKE_CUDA_HEADERS")
    include = [f"-I{headers}"] if headers else []
    done = subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", output, file, *include, *arguments],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


def program(folder, source, *arguments, name="program"):
    return cc(folder / name, source, "-rdynamic", "-pthread", f"-L{FAKES}", "-l:libcuda.so.1", *arguments)


def library(folder, name, source, *arguments):
    return cc(folder / name, source, "-shared", "-fPIC", f"-L{FAKES}", *arguments)


def environment(**more):
    """Of a process that finds the fakes, whatever this one was started with."""
    return {"LD_LIBRARY_PATH": str(FAKES), VARIABLE: "", **{key: str(value) for key, value in more.items()}}


def both(command, folder, *, launcher="preload", options=None, **env):
    """The run under numsan, which is asked to notice CUDA; its output and status are those of the bare one."""
    options = {"raw": "1", **(options or {})}
    command = [str(part) for part in (command if isinstance(command, list) else [command])]
    bare = run_numsan.run_plain_command(command, cwd=folder, env=environment(**env))
    done = run_numsan.run_command(command, launcher=launcher, options=options, cwd=folder, env=environment(**env))
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.describe() + bare.describe()
    if done.report is not None:
        run_numsan.validate(done.report)
    return done


def said_once(done, text):
    lines = done.stderr.splitlines()
    return len(lines) == 1 and lines[0].startswith("numsan: incomplete: ") and text in lines[0]
