"""scripts/demo on a made-up machine: what it installs, builds and runs, and that the status is the program's."""
import pytest

from test_setup import TESTS_ONLY

NUMSAN = """
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
def builder(root_machine):
    """A machine whose cmake leaves a command behind that runs the program bare."""
    for name in ("g++", "ninja", "cmake"):
        root_machine.program(name, "")
    root_machine.program("numsan", NUMSAN, root_machine.root / "build/bin")
    return root_machine


@pytest.mark.parametrize("arguments", [[], ["--eps", "1e-12"]])
def test_demo_brings_what_it_needs_and_no_tests(builder, arguments):
    done = builder.run("demo", *arguments)
    assert done.returncode == 3, done  # the program's own
    assert " ".join(["ran tests/programs/demo/train.py", *arguments]) + "\n" in done.stdout
    assert ("then run: scripts/demo --eps 1e-12" in done.stdout) == (not arguments)
    assert not TESTS_ONLY & builder.installed()
    assert not [line for line in builder.lines("requirements") if line.startswith("pytest")]
    configured, built = builder.calls("cmake")
    assert configured.startswith("--preset release")
    assert built == "--build --preset release --target numsan numsan_core numsan_preload"


def test_demo_stops_where_setup_fails(builder):
    (builder.folder / "offline").touch()
    done = builder.run("demo")
    assert done.returncode == 1 and builder.calls("cmake") == [], done


def test_build_says_what_is_missing(root_machine):
    root_machine.program("cmake", "")
    done = root_machine.run("build")
    assert (done.returncode, done.stderr) == (1, "[build] error: ninja is missing: run scripts/setup first\n"), done
