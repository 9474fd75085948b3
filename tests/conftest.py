"""Shared by all pytest-driven tests: says when there is nothing to test, and pays for the adapter build once."""
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
import run_numsan  # noqa: E402

# What a shell starts in the background ignores SIGINT, and so would all programs of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore_glob = ["programs/*/*", "twin/programs/*"]



def pytest_configure(config):
    config.addinivalue_line("markers", "quick: part of scripts/test --quick, the answer within minutes")
    config.addinivalue_line("markers", "nightly: part of scripts/test --all only; the others are what CI runs")
    config.addinivalue_line("markers", "xdist_group(name): tests that share a costly run, for one worker")


@pytest.fixture(scope="session")
def build():
    """The build under test. A missing build is a failure, never a skip: silence would look like success."""
    missing = run_numsan.missing_parts()
    if missing:
        pytest.fail(f"nothing to test: {', '.join(map(str, missing))} missing; "
                    "build first (scripts/build), or point NUMSAN_BUILD at a build folder", pytrace=False)
    return run_numsan.BUILD


@pytest.fixture(scope="session")
def warm(build, tmp_path_factory):
    """Runs one trivial program, so that the adapter is compiled here once and not inside some test's time limit."""
    run_numsan.CACHE.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("warm")
    program = folder / "warm.py"
    program.write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    done = run_numsan.run(program, cwd=folder, timeout=420)
    if done.returncode != 0 or done.stdout != "2.0\n" or done.report is None:
        pytest.fail(f"a trivial torch program does not run under numsan\n{done.describe()}", pytrace=False)
    return build
