"""Memory of a run whose steps make modules, closures, lambdas and functions: the short form of tests/bench/soak.py."""
import sys

import pytest

import run_numsan

sys.path.insert(0, str(run_numsan.REPO / "tests/bench"))
import soak  # noqa: E402

STEPS, WARM_UP = 38_000, 32_000  # by then there are more stacks and births than are kept, and memory is flat
MOST_MB = 4  # the allocator's steps, of two megabytes without numsan, too; without bounds 15 MB and more


@pytest.mark.parametrize("kind", ["healthy", pytest.param("poisoned", marks=pytest.mark.nightly)])
def test_memory_stays_flat(kind, warm, tmp_path):
    rows, report = soak.soak(kind, STEPS, WARM_UP, folder=tmp_path, timeout=900)
    assert report["coverage"]["forgotten"]["stacks"] > 0, report["coverage"]
    assert soak.wrong_findings(kind, report) == []
    before_the_end = rows[-2][2]  # a finding is told in the last step of a healthy run
    assert before_the_end - rows[0][2] < MOST_MB, rows
