"""Healthy programs of all of tests/, (path, arguments) each: what no training fault may be reported of."""
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
HERE = TESTS / "diagnosis"
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "twin")]
import test_bit_identical as twins  # noqa: E402

# Steps that make runs long enough for a judgement, of programs that take a number of steps.
STEPS_OF_TRAININGS, STEPS_OF_MODELS = 600, 80


def short():
    yield from ((path, ("healthy",)) for path in sorted((HERE / "growth").glob("*.py")))
    yield from ((path, ("healthy",)) for path in sorted((HERE / "programs").glob("*.py")))
    yield from ((path, ()) for path in sorted((HERE / "healthy").glob("*.py")))
    yield from ((path, ()) for path in sorted((TESTS / "suite" / "controls").glob("q*.py")))
    # Neither ranks nor workers nor a compiler.
    yield from ((twins.PROGRAMS / parts[0], ()) for _, parts in sorted(twins.CASES.items()) if len(parts) == 1)
    yield from ((path, ()) for path in sorted((TESTS / "programs").glob("*/twin.py")))


def long():
    trainings = TESTS / "trainings"
    yield from ((path, (STEPS_OF_TRAININGS,)) for path in sorted((trainings / "programs").glob("*.py")))
    yield from ((path, (STEPS_OF_MODELS,)) for path in sorted((trainings / "models" / "programs").glob("*.py"))
                if path.stem != "loop")
    yield from ((path, ()) for path in sorted((TESTS / "perf" / "looks_slow").glob("*.py")))
