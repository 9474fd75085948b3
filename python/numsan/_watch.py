"""What tests have to do with findings: each belongs to the test that ran when it was made. Needs pytest 8."""
from __future__ import annotations

import sys
import typing
from collections.abc import Generator

import pytest

from . import _allow, _news, _show

PROPERTY = "numsan"  # of tests that have findings, in --junit-xml too: a line each

Finding = dict[str, typing.Any]


class NumsanWarning(UserWarning):
    """A finding that does not fail its test."""


class Watch:
    """Hands each finding to the test that ran."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.fail_on: str = config.getoption("numsan_fail_on")
        self.news = _news.News()
        self.outside: list[str] = []  # found where no test ran, a line each
        self.outside_fails = False
        self.tests: dict[str, list[str]] = {}

    def pytest_report_header(self) -> str:
        return f"numsan: tier {self.config.getoption('numsan')}, tests fail on {self.fail_on}"

    def take(self) -> tuple[dict[str, typing.Any], list[Finding]]:
        """The report, and what was found or came again since the last call."""
        return self.news.take() if "torch" in sys.modules else ({}, [])

    def fails(self, finding: Finding) -> bool:
        severities = {"error": ("error",), "warning": ("error", "warning"), "none": ()}[self.fail_on]
        return finding["severity"] in severities

    def take_outside(self) -> None:
        for finding in self.take()[1]:
            self.outside.append(_show.line(finding))
            self.outside_fails = self.outside_fails or self.fails(finding)

    def judge(self, item: pytest.Item, phase: str, raised: bool) -> None:
        """Adds what was found to the test; fails it, unless it has failed."""
        report, found = self.take()
        rules = _rules_of(item, complain=phase == "setup")
        folder = report.get("run", {}).get("cwd") or ""
        found = [finding for finding in found if not _allow.allows(rules, finding, folder)]
        if not found:
            return
        text = _show.text(report, found)
        lines = [_show.line(finding) for finding in found]
        item.user_properties += [(PROPERTY, line) for line in lines]
        failing = [finding for finding in found if self.fails(finding)]
        if raised or not failing:
            item.add_report_section(phase, "numsan", text)
        for finding in found:
            if not self.fails(finding) and finding["severity"] != "info":
                item.warn(NumsanWarning(_show.line(finding)))
        if failing and not raised:
            pytest.fail(f"{_show.line(failing[0])}\n\n{text}", pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self.take_outside()
        return (yield)

    def around(self, item: pytest.Item, phase: str) -> Generator[None, object, object]:
        try:
            result = yield
        except BaseException:
            self.judge(item, phase, raised=True)
            raise
        self.judge(item, phase, raised=False)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self.around(item, "setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self.around(item, "call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self.around(item, "teardown"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of a worker's tests, too."""
        lines = [str(value) for name, value in report.user_properties if name == PROPERTY]
        if lines and report.when == "teardown":  # which has those of all phases
            self.tests[report.nodeid] = lines

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: typing.Any) -> None:
        """A worker of pytest-xdist has ended, and says what it found where no test ran."""
        lines, fails = getattr(node, "workeroutput", {}).get("numsan", ([], False))
        self.outside += lines
        self.outside_fails = self.outside_fails or fails

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.take_outside()
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["numsan"] = (self.outside, self.outside_fails)
        elif self.outside_fails and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: typing.Any) -> None:
        if not self.tests and not self.outside:
            return
        found = sum(map(len, self.tests.values()))
        terminalreporter.section("numsan")
        terminalreporter.line(f"{found} {'finding' if found == 1 else 'findings'} in {len(self.tests)} "
                              f"{'test' if len(self.tests) == 1 else 'tests'}")
        for test, lines in self.tests.items():
            for line in lines:
                terminalreporter.line(f"{test}: {line}")
        for line in self.outside:
            terminalreporter.line(f"where no test ran: {line}")


def _rules_of(item: pytest.Item, complain: bool) -> list[list[_allow.Condition]]:
    """Of all marks of the test. With `complain` a rule that is none is an error of the test."""
    rules = []
    for mark in item.iter_markers("numsan"):
        texts = mark.kwargs.get("allow", mark.args)
        for text in [texts] if isinstance(texts, str) else texts:
            try:
                rules.append(_allow.rule(text))
            except ValueError as error:
                if complain:
                    pytest.fail(f"numsan: {error}", pytrace=False)
    return rules
