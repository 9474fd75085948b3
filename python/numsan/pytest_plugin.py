"""`pytest --numsan[=TIER]`: tests run under numsan, and each finding belongs to the test that ran when it was made.

The library must be loaded before a process starts: pytest starts itself again under `numsan run`, once, before anything
is collected. Workers of pytest-xdist inherit it. See docs/pytest.md.
"""
from __future__ import annotations

import os
import re
import sys

import pytest

from . import _command, _library

TIERS = ("auto", "sentinel", "boundary", "full")
FAIL_ON = ("error", "warning", "none")
STARTED_AGAIN = "NUMSAN_PYTEST"  # in the environment of the pytest that runs under numsan
# Of the process, where NUMSAN_OPTIONS does not say otherwise: findings are the tests' own, and shown with them.
OPTIONS = {"report": "none", "log": "none", "max_findings": "4096"}

def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("numsan", "numerical sanitizer")
    group.addoption("--numsan", nargs="?", const="auto", default=None, metavar="TIER",
                    help="run tests under numsan; the tier is one of " + ", ".join(TIERS))
    group.addoption("--numsan-fail-on", choices=FAIL_ON, default="error",
                    help="a test fails by findings of this severity or above; other findings are warnings")


def _is_named(argument: str) -> bool:
    return argument == "--numsan" or argument.startswith("--numsan=")


def _given_again(given: list[str]) -> list[str]:
    """The arguments with the tier where nobody can take it for something else: `--numsan tests` is two arguments."""
    arguments, rest = [], iter(given)
    for argument in rest:
        if argument != "--numsan":
            arguments.append(argument)
            continue
        following = next(rest, None)
        arguments.append("--numsan=" + (following if following in TIERS else "auto"))
        if following is not None and following not in TIERS:
            arguments.append(following)
    return arguments


def _start_again(config: pytest.Config, wanted: str | None) -> None:
    """Does not return where pytest is to run under numsan and does not yet."""
    if wanted is None or "PYTEST_XDIST_WORKER" in os.environ:
        return
    given = [str(argument) for argument in config.invocation_params.args]
    named = [argument for argument in given if _is_named(argument)]
    tier = wanted if wanted in TIERS else "auto"
    if wanted not in TIERS and "--numsan" not in named:
        raise pytest.UsageError(f"--numsan: bad value '{wanted}': expected one of {', '.join(TIERS)}"
                                + ("" if named else ", after a '=' where it is not on the command line"))
    if _library.is_preloaded() and wanted in TIERS:
        return
    if os.environ.get(STARTED_AGAIN):
        raise pytest.UsageError("--numsan: pytest was started again, and numsan is not loaded: "
                                "`numsan doctor -- python` may say why")
    command = _command.command()
    if command is None:
        raise pytest.UsageError("--numsan: the command `numsan` was found neither beside this package nor on PATH")
    if sys.orig_argv[len(sys.orig_argv) - len(given):] != given:
        raise pytest.UsageError("--numsan: pytest was called by a program, which cannot be started again from here: "
                                "start that program with `numsan run -- python ...`")
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    start = sys.orig_argv[1:len(sys.orig_argv) - len(given)]
    before = os.environ.get("NUMSAN_OPTIONS", "")
    flags = [word for key, value in OPTIONS.items() if not re.search(rf"(^|:){key}=", before)
             for word in (f"--{key}", value)]
    python = [sys.executable, *start, *_given_again(given)]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command, [command, "run", *flags, "--tier", tier, "--", *python], {**os.environ, STARTED_AGAIN: "1"})


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any conftest is loaded."""
    _start_again(early_config, early_config.known_args_namespace.numsan)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "numsan(allow): findings that match one of these rules are left out: "
                                       "a line of an allow-list, or several")
    _start_again(config, config.getoption("numsan"))  # where a conftest brought this plugin
    if config.getoption("numsan") is not None:
        if pytest.version_tuple < (8,):
            raise pytest.UsageError(f"--numsan: this is pytest {pytest.__version__}, 8.0 or later is needed")
        from ._watch import Watch
        config.pluginmanager.register(Watch(config), "numsan-watch")
