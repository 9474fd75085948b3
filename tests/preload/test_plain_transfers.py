"""What ranks of CUDA programs without torch exchange by NCCL, on the fakes: a bad value is the rank's that made it, and
the program runs as it does without numsan."""
import pathlib

import pytest

from cuda_programs import FAKES, both, cache_value, cc

SOURCE = pathlib.Path(__file__).with_name("plain_transfers.c")

pytestmark = pytest.mark.skipif(not (FAKES / "libnccl.so.2").exists(),
                                reason="no fake NCCL was built: its header was not found")


@pytest.fixture(scope="session")
def program(cupti, tmp_path_factory):
    output = tmp_path_factory.mktemp("transfers") / "transfers"
    return cc(output, SOURCE.read_text(), "-g", "-rdynamic", "-pthread", f"-I{cache_value('NUMSAN_FAKE_NCCL')}",
              f"-L{FAKES}", "-l:libnccl.so.2", "-l:libcuda.so.1", "-lm")


def line_of(text):
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("way", ["healthy", "missing values", "an infinity arrives", "halves", "hand on", "threads",
                                 "alone", "what is not sent", "integers"])
def test_what_is_healthy_or_another_ranks_is_no_finding(way, program, tmp_path):
    done = both([program, way], tmp_path)
    assert done.stderr == "" and done.report["findings"] == [], done.describe()
    assert done.report["verdict"] == "clean" and done.report["coverage"]["scanned"] > 0, done.describe()


@pytest.mark.parametrize("way", ["a rank sends NaN", "a rank sends NaN and keeps none", "hand on NaN",
                                 "a thread sends NaN", "alone with NaN"])
def test_a_bad_value_is_the_ranks_that_made_it(way, program, tmp_path):
    done = both([program, way], tmp_path)
    assert [f["op"] for f in done.report["findings"]] == ["root<<<>>>"], done.describe()
    assert done.report["findings"][0]["location"]["line"] == line_of("// the gradient"), done.describe()
    escaped = "host" if way == "alone with NaN" else "collective"
    assert done.report["findings"][0]["escape"]["into"] == escaped, done.describe()


@pytest.mark.parametrize("way", ["halves overflow", "halves overflow in place"])
def test_a_sum_over_ranks_overflows(way, program, tmp_path):
    done = both([program, way], tmp_path)
    assert [f["title"] for f in done.report["findings"]] == [
        "first infinity of this run: `ncclAllReduce()` overflowed in 8 of 16 values"], done.describe()
    assert done.report["findings"][0]["location"]["line"] == line_of("// of halves"), done.describe()


def test_more_calls_than_are_kept_of_a_group(program, tmp_path):
    done = both([program, "many in a group"], tmp_path)
    assert done.report["findings"] == [], done.describe()
    assert done.stderr == ("numsan: incomplete: calls of `ncclBcast`: 1 not looked at, as too many were grouped\n"
                           ), done.describe()
