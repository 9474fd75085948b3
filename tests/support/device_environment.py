"""The environment of programs that use the test device of tests/fakes/torch_device."""
import os

import run_numsan

FAKES = run_numsan.REPO / "tests" / "fakes" / "torch_device"
PRELUDE = run_numsan.REPO / "tests" / "device"


def of_test_device(*modules):
    """`modules`: folders that the program imports from, beside that of the device."""
    return {"PYTHONPATH": os.pathsep.join(map(str, [FAKES, *modules])), "NUMSAN_BUILD": str(run_numsan.BUILD),
            "FAKEGPU_CACHE": os.environ.get("FAKEGPU_CACHE", str(run_numsan.CACHE / "tests"))}
