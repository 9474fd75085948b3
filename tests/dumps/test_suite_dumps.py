"""Dumps of real bug programs are reproduced, by the program that is written too, and their help is judged.

A bounded part of `whole_suite_dumps.py`, which does so for the whole suite.
"""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import whole_suite_dumps  # noqa: E402

# Of each phase and of each way in which a row of help is tried.
PROGRAMS = ["p01", "p05", "p12", "p15", "p17", "p18", "p24", "p34"]


@pytest.fixture(scope="module")
def suite(warm, tmp_path_factory):
    made = whole_suite_dumps.SuiteDumps(tmp_path_factory.mktemp("suite"))
    yield made
    made.close()


@pytest.mark.xdist_group("suite_dumps")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bug_of_the_suite(name, suite):
    (program,) = whole_suite_dumps.programs([name])
    result = suite.run(program)
    assert not result.wrong, result
    for line in result.shown["help"]:
        assert line["judgement"] != "helps" or line["bad_values"] == 0, line
