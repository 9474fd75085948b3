"""Products of matrices by cuBLAS in CUDA programs without torch, on the fakes: what the program gives the library is
looked at, and the program runs as it does without numsan."""
import pathlib
import re

import pytest

from cuda_programs import FAKES, both, cc

SOURCE = pathlib.Path(__file__).with_name("plain_products.c")

pytestmark = pytest.mark.skipif(not (FAKES / "libcublas.so.13").exists(),
                                reason="no fake cuBLAS was built: its headers were not found")

LIBRARIES = (f"-L{FAKES}", "-l:libcublas.so.13", "-l:libcuda.so.1", "-lm", "-ldl")
LINKED = {"lazy": (), "at once": ("-Wl,-z,now",), "at a fixed address": ("-no-pie", "-fno-pie", "-Wl,-z,lazy")}


@pytest.fixture(scope="session")
def make(cupti, tmp_path_factory):
    """make(how it is linked) is the program."""
    made = {}

    def program(linked="lazy"):
        if linked not in made:
            folder = tmp_path_factory.mktemp("products")
            made[linked] = cc(folder / "products", SOURCE.read_text(), "-g", "-rdynamic", *LINKED[linked], *LIBRARIES)
        return made[linked]
    return program


def line_of(text):
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("way", ["healthy", "missing values", "what is not read", "what is added to", "a refused call",
                                 "nothing", "factor of the device", "part", "halves", "batch", "lt",
                                 "lt with a missing bias", "train"])
def test_what_is_healthy_or_was_there_before_is_no_finding(way, make, tmp_path):
    done = both([make(), way], tmp_path)
    assert done.stderr == "" and done.report["findings"] == [], done.describe()
    assert done.report["verdict"] == "clean" and done.report["coverage"]["scanned"] > 0, done.describe()


OVERFLOWED = """\
warning[NS104]: first infinity of this run: `cublasSgemm()` overflowed in 32 of 32 values
  --> FILE:LINE in multiply
   |
LINE |     TRY(sgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, &one, (float*)a, kRows, (float*)b, \
kInner, &beta,
   |
   = seen:     output[0] float32[8,4]  nan 0  +inf 32  -inf 0  first at [0,0]
   = inputs:   input[0]  float32[8,16]  1.0e+20        large for float32
               input[1]  float32[16,4]  1.0e+20        large for float32
   = when:     step 0, forward, op 1 (cublasSgemm())
   = kernel:   fake_cublas_product, launch 1, grid 1x1x1, block 1x1x1, stream 0x0, correlation NUMBER
   = escaped:  to the host program
   = category: U not enough evidence (0.23); next N1 invalid data (0.09), N2 unsafe operation (0.09)
   = because:  every operand was finite, the largest 1e+20
help: scale down what `cublasSgemm()` is given, or let it add up and write in a wider type: float32 ends at 3.40282e+38
"""


@pytest.mark.parametrize("linked", LINKED)
def test_the_call_and_its_line(linked, make, tmp_path):
    program = make(linked)
    done = both([program, "overflow"], tmp_path)
    line = line_of("TRY(sgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows")
    text = re.sub(r"correlation \d+", "correlation NUMBER", done.stderr.replace(str(program.with_suffix(".c")), "FILE"))
    text = text.replace(f"FILE:{line} ", "FILE:LINE ").replace(f"\n{line} |", "\nLINE |")
    assert text.startswith(OVERFLOWED), done.describe()


@pytest.mark.parametrize("way, kind, did, line", [
    ("sums below zero", "infinity", "`cublasSgemm()` overflowed in 32 of 32 values", "(float*)b, kInner, &beta,"),
    ("over what is not read", "infinity", "`cublasSgemm()` overflowed in 32 of 32 values", "(float*)b, kInner, &beta,"),
    ("fork", "infinity", "`cublasSgemm()` overflowed in 32 of 32 values", "(float*)b, kInner, &beta,"),
    ("part overflows", "infinity", "`cublasSgemm()` overflowed in 32 of 32 values", "(float*)wide"),
    ("halves overflow", "infinity", "`cublasGemmEx()` overflowed in 64 of 64 values", "cublasGemmEx("),
    ("batch overflows", "infinity", "`cublasSgemmStridedBatched()` overflowed in 64 of 128 values",
     "cublasSgemmStridedBatched("),
    ("lt overflows", "infinity", "`cublasLtMatmul()` overflowed in 32 of 32 values", "cublasLtMatmul("),
    ("a bad factor", "NaN", "`cublasSgemm()` took in a bad value in 32 of 32 values", "&bad, (float*)a"),
    ("train too fast", "infinity", "the kernel `square<<<>>>` overflowed in 32 of 32 values",
     "_Z6squarePfPKfi\", (void*)"),
])
def test_a_bug(way, kind, did, line, make, tmp_path):
    done = both([make(), way], tmp_path)
    assert [f["title"] for f in done.report["findings"]] == [f"first {kind} of this run: {did}"], done.describe()
    first = line_of(line)
    assert first - 2 <= done.report["findings"][0]["location"]["line"] <= first, done.describe()


def test_a_product_in_a_graph_is_not_looked_at(make, tmp_path):
    done = both([make(), "in a graph"], tmp_path)
    assert done.stderr == ("numsan: incomplete: kernels in CUDA graphs: 1 launch not looked at when the graph was "
                           "made, nor when it ran\n"), done.describe()


def test_nothing_is_looked_at_once_a_profiler_has_come(make, tmp_path):
    done = both([make(), "a profiler comes"], tmp_path)
    assert done.report["findings"] == [], done.describe()
    blind = done.report["coverage"]["blind_spots"]
    assert "kernel launches since another tool took CUPTI: not counted" in blind, done.describe()


SHIM = """
#define _GNU_SOURCE
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdio.h>
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
    __typeof__(cublasSgemm_v2)* next = (__typeof__(cublasSgemm_v2)*)dlsym(RTLD_NEXT, "cublasSgemm_v2");
    puts("a tool of the program's");
    return next(handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
"""


def test_a_tool_that_stands_before_the_library_is_kept(cupti, tmp_path):
    cc(tmp_path / "libshim.so", SHIM, "-shared", "-fPIC", "-ldl")
    program = cc(tmp_path / "products", SOURCE.read_text(), "-g", "-rdynamic", f"-L{tmp_path}",
                 f"-Wl,-rpath,{tmp_path}", "-lshim", *LIBRARIES)
    done = both([program, "overflow"], tmp_path)
    assert done.stdout.startswith("a tool of the program's\n"), done.describe()
    assert [f["op"] for f in done.report["findings"]] == ["cublasSgemm()"], done.describe()
