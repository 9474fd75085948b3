"""CUDA programs that nvcc built, on the fakes: their kernels compute what the host does, and numsan names the launch or
the call that made the first bad value, as a user wrote it."""
import math
import re
import subprocess

import numpy
import pytest

import run_numsan
from cuda_cases import CASES, HEALTHY
from cuda_programs import PROGRAMS as FOLDER
from cuda_programs import FAKES, both, cc, environment, need_programs


@pytest.fixture(scope="module", autouse=True)
def programs(build):
    need_programs(HEALTHY)


def on_the_fake(program):
    return {"FAKE_CUDA": f"kernels={FOLDER / program}_kernels.so"}


def printed(program, argument):
    done = run_numsan.run_plain_command([str(FOLDER / program), argument], env=environment(**on_the_fake(program)))
    assert done.returncode == 0 and done.stderr == "", done.describe()
    return [[float(word) for word in line.split() if word[-1].isdigit()] for line in done.stdout.splitlines()]


def own_name(function):
    """`launch` of `void (anonymous namespace)::launch<int>(int)`."""
    return re.match(r"(?:void )?(?:.*?::)?(\w+)(?:[<(]|$)", function.replace("(anonymous namespace)::", ""))[1]


def random_states(state):
    while True:
        state = (state * 1664525 + 1013904223) % 2**32
        yield state


def test_the_numbers_of_the_stencil():
    """To the last bit: a fused product by a power of two is rounded as one that is not."""
    at = [[math.sin(0.1 * column) * math.cos(0.2 * row) for column in range(64)] for row in range(32)]
    values = numpy.array(at)
    capacities = numpy.ones((32, 64))
    capacities[16, 32] = 0.5
    for _ in range(25):
        inner = values[1:-1, 1:-1]
        flow = values[1:-1, 2:] + values[1:-1, :-2] + values[2:, 1:-1] + values[:-2, 1:-1] - 4 * inner
        values[1:-1, 1:-1] = inner + 0.05 * flow / capacities[1:-1, 1:-1]
    assert printed("stencil", "0.5") == [[column, values[16, column]] for column in range(0, 64, 8)]


def test_the_numbers_of_the_reduction():
    """Sums of float16 in the order of blocks, warps and lanes."""
    states = random_states(11)
    values = numpy.array([(next(states) >> 24) / 128 for _ in range(8192)], numpy.float16)

    def in_block(numbers):  # 128 columns, one for each thread
        sums = numpy.zeros(128, numpy.float16)
        for row in numbers:
            sums = sums + row
        warps = numpy.zeros(32, numpy.float16)
        warps[:4] = [in_warp(sums[first:first + 32]) for first in range(0, 128, 32)]
        return in_warp(warps)

    def in_warp(lanes):
        for distance in (16, 8, 4, 2, 1):
            lanes = lanes[:distance] + lanes[distance:2 * distance]
        return lanes[0]

    of_blocks = numpy.zeros((1, 128), numpy.float16)
    of_blocks[0, :16] = [in_block(values.reshape(4, 16, 128)[:, block]) for block in range(16)]
    total = in_block(of_blocks)
    assert printed("reduction", "1") == [[float(total), float(total / numpy.float16(8192))]]


def test_the_numbers_of_the_roots():
    assert numpy.allclose(printed("roots", "1"), [[i, math.sqrt(i)] for i in range(1, 65, 9)], rtol=1e-6)


def test_the_numbers_of_the_perceptron():
    states = random_states(1)

    def numbers(rows, columns):  # column by column
        return numpy.array([(next(states) >> 8) / 2**23 - 1 for _ in range(rows * columns)]).reshape(columns, rows).T

    x = numbers(8, 64)
    targets = x[:4] * x[1:5]
    w1, w2 = numbers(32, 8) / 8, numbers(4, 32) / 32
    b1, b2 = numpy.zeros((32, 1)), numpy.zeros((4, 1))
    wanted = []
    for step in range(40):
        hidden = numpy.maximum(w1 @ x + b1, 0)
        error = (w2 @ hidden + b2 - targets) / 64
        d_hidden = (w2.T @ error) * (hidden > 0)
        w1, b1 = w1 - d_hidden @ x.T, b1 - d_hidden.sum(1, keepdims=True)
        w2, b2 = w2 - error @ hidden.T, b2 - error.sum(1, keepdims=True)
        if step % 5 == 4:
            wanted.append([step + 1, (error**2).sum() * 64 / 2])
    seen = printed("mlp", "1")
    assert numpy.allclose(seen, wanted, rtol=1e-4), f"{seen}\n{wanted}"
    assert seen[-1][1] < seen[0][1] / 2, "it learns"


def test_the_numbers_of_the_optimizer():
    states = random_states(5)
    inputs = numpy.zeros((64, 8))
    inputs[:, :7] = [[(next(states) >> 8) / 2**23 - 1 for _ in range(7)] for _ in range(64)]
    targets = inputs[:, 0] - 2 * inputs[:, 1]
    weights, mean, square = numpy.zeros((3, 8))
    for step in range(1, 31):
        gradient = 2 * inputs.T @ (inputs @ weights - targets) / 64
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        weights = weights - 0.1 * mean / (1 - 0.9**step) / (numpy.sqrt(square / (1 - 0.999**step)) + 1e-8)
    assert numpy.allclose(printed("optimizer", "1e-8"), list(enumerate(weights)), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("program, argument", HEALTHY.items())
def test_a_healthy_program_is_met_with_silence(program, argument, tmp_path):
    done = both([FOLDER / program, argument], tmp_path, **on_the_fake(program))
    assert done.returncode == 0 and done.stderr == "" and done.report["findings"] == [], done.describe()
    assert done.report["coverage"]["scanned"] > 0, done.describe()


@pytest.mark.parametrize("name", CASES)
def test_the_launch_and_its_line(name, tmp_path):
    case = CASES[name]
    done = both([FOLDER / case.program, case.argument], tmp_path, **on_the_fake(case.program))
    assert done.returncode == 0 and case.differs(done.report) == "", case.differs(done.report) + done.describe()
    place = done.report["findings"][0]["location"]
    assert own_name(place["function"]) == case.function and place["code"] in case.source.read_text(), place
    assert f"--> {case.source}:{case.line} in {place['function']}" in done.stderr, done.describe()
    frames = [(own_name(frame["function"]), frame["line"]) for frame in done.report["findings"][0]["stack"]]
    assert frames[0] == (case.function, case.line) and frames[-1] == ("_start", None), frames
    assert [name for name, _ in frames[1:-1]] == ([] if case.function == "main" else ["main"]), "no stubs of nvcc's"


@pytest.mark.parametrize("name", ["stencil", "roots", "by_pointer"])
def test_the_function_that_launches_without_debug_information(name, tmp_path):
    case = CASES[name]
    program = tmp_path / case.program
    subprocess.run(["objcopy", "--strip-debug", FOLDER / case.program, program], check=True)
    done = both([program, case.argument], tmp_path, **on_the_fake(case.program))
    [found] = done.report["findings"]
    names = [own_name(frame["function"]) for frame in found["stack"]]
    assert names == [*dict.fromkeys([case.function, "main"]), "_start"], done.describe()
    assert not found["location"]["line"] and found["op"] == case.op, done.describe()


def test_the_exit_status_may_be_the_finding(tmp_path):
    for argument, status in (("0", 66), ("0.5", 0)):
        done = run_numsan.run_command([str(FOLDER / "stencil"), argument], options={"raw": "1", "fail_on": "warning"},
                                      cwd=tmp_path, env=environment(**on_the_fake("stencil")))
        assert done.returncode == status, done.describe()


def test_a_report_that_is_not_as_it_should_be_is_seen():
    """Of cuda_cases, which judges runs on a GPU, too."""
    case = CASES["stencil"]
    found = {"kind": case.kind, "op": case.op, "kernel": case.kernel,
             "severity": "warning", "escape": {"into": "host"}, "launches": [{"number": 9}, {"number": case.launch}],
             "location": {"file": f"/elsewhere/{case.program}.cu", "line": case.line}}
    assert case.differs({"findings": [found]}) == ""
    assert case.differs({"findings": []}) == "0 findings, expected 1"
    later = {**found, "launches": [{"number": 7}]}
    assert case.differs({"findings": [later]}) == "launch is 7, expected 1"
    assert case.differs({"findings": [later]}, numbered=False) == ""
    assert "line is 0" in case.differs({"findings": [{**found, "location": None}]})
    assert "kernel is x" in case.differs({"findings": [{**found, "kernel": "x"}]})
    assert "severity is error" in case.differs({"findings": [{**found, "severity": "error"}]})
    assert "escaped is grad" in case.differs({"findings": [{**found, "escape": {"into": "grad"}}]})
    told = case.differs({"findings": [{"kind": case.kind, "op": case.op}]})
    assert all(f"{key} is None" in told for key in ("launch", "kernel", "severity", "escaped")), told


def test_a_function_that_is_no_kernel_is_an_error_that_is_kept(tmp_path):
    program = cc(tmp_path / "program", r"""
#include <cuda_runtime_api.h>
#include <stdio.h>
int main(void) {
    const dim3 one = {1, 1, 1};
    void* none[] = {0};
    const int now = cudaLaunchKernel((const void*)main, one, one, none, 0, 0), kept = cudaGetLastError();
    printf("%d %d %d\n", now, kept, cudaGetLastError());
}
""", f"-L{FAKES}", "-l:libcudart.so.13", f"-Wl,-rpath-link={FAKES}")
    done = run_numsan.run_plain_command([str(program)], env=environment())
    assert done.stdout == "98 98 0\n", done.describe()


def test_a_program_whose_kernels_cannot_be_launched_ends_as_it_does_without_numsan(tmp_path):
    """The driver is not told of their translations."""
    done = both([FOLDER / "reduction", "16"], tmp_path)
    assert done.returncode == 3 and "cudaGetLastError(): invalid resource handle" in done.stderr, done.describe()
    assert "warning" not in done.stderr, done.describe()
