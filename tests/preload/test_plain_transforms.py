"""Fourier transforms by cuFFT in CUDA programs without torch, on the fakes: what the plan says is looked at, and the
program runs as it does without numsan."""
import pathlib

import pytest

from cuda_programs import FAKES, both, cache_value, cc

SOURCE = pathlib.Path(__file__).with_name("plain_transforms.c")

pytestmark = pytest.mark.skipif(not (FAKES / "libcufft.so.12").exists(),
                                reason="no fake cuFFT was built: its headers were not found")


@pytest.fixture(scope="session")
def program(cupti, tmp_path_factory):
    output = tmp_path_factory.mktemp("transforms") / "transforms"
    return cc(output, SOURCE.read_text(), "-g", "-rdynamic", f"-I{cache_value('NUMSAN_FAKE_CUFFT')}", f"-L{FAKES}",
              "-l:libcufft.so.12", "-l:libcuda.so.1", "-lm", "-ldl")


def line_of(text):
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("way", ["convolve", "transform", "in place", "columns", "types of both sides",
                                 "missing values", "a refused call"])
def test_what_is_healthy_or_was_there_before_is_no_finding(way, program, tmp_path):
    done = both([program, way], tmp_path)
    assert done.stderr == "" and done.report["findings"] == [], done.describe()
    assert done.report["verdict"] == "clean" and done.report["coverage"]["scanned"] > 0, done.describe()


@pytest.mark.parametrize("way, title, line", [
    ("convolve what is large", "infinity of this run: the kernel `square<<<>>>` overflowed in 2 of 64 values",
     "// of spectra"),
    ("transform what is large", "infinity of this run: `cufftExecC2C()` overflowed in 2 of 16 values",
     "// of a spectrum"),
    ("in place what is large", "infinity of this run: `cufftExecR2C()` overflowed in 1 of 9 values", "// in place"),
    ("columns that are large", "infinity of this run: `cufftExecC2C()` overflowed in 4 of 16 values", "// of columns"),
    ("types of both sides, large", "infinity of this run: `cufftXtExec()` overflowed in 2 of 16 values", "// by types"),
    ("what a kernel made",
     "NaN of this run: the kernel `root<<<>>>` made bad values out of finite ones in 16 of 64 values", "// a root"),
])
def test_a_bug(way, title, line, program, tmp_path):
    done = both([program, way], tmp_path)
    assert [f["title"] for f in done.report["findings"]] == ["first " + title], done.describe()
    assert done.report["findings"][0]["location"]["line"] == line_of(line), done.describe()


def test_of_a_plan_that_was_not_seen_nothing_is_known(program, tmp_path):
    done = both([program, "a plan that was not seen"], tmp_path)
    assert done.report["findings"] == [], done.describe()
    assert done.stderr == ("numsan: incomplete: calls of `cufftExecC2C`: 1 not looked at, as its plan was not seen to "
                           "be made\n"), done.describe()
