"""What the tests of CUDA programs need to be built."""
import pytest

from cuda_programs import FAKES, cache_value


@pytest.fixture(scope="session")
def cuda(build):
    if not cache_value("NUMSAN_FAKE_CUDA_HEADERS"):
        pytest.skip("no cuda.h: there is no fake CUDA driver")
    if not (FAKES / "libcuda.so.1").exists():
        pytest.fail(f"{FAKES}/libcuda.so.1 is missing: build first (scripts/build)", pytrace=False)


@pytest.fixture(scope="session")
def cupti(cuda):
    if not cache_value("NUMSAN_FAKE_CUPTI"):
        pytest.skip("no headers of CUPTI 13: there is no fake CUPTI")
    if not (FAKES / "libcupti.so.13").exists():
        pytest.fail(f"{FAKES}/libcupti.so.13 is missing: build first (scripts/build)", pytrace=False)
