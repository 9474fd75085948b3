"""The programs of this folder as tests see them: each function of programs/*.py is one, its comments say what is right.

    # expect: op=aten::log phase=forward ...    of the first finding; values are alternatives, separated by commas
    # expect: nothing                           a healthy program
    # expect: warning                           a healthy program that may be warned of
    # wrong: TEXT                               what numsan does not do yet, and why
    ...  # BUG                                  the line that must be named, once

Optional: step, findings (default 1), severity (default error), into (what the value reached), reaches (the end of the
name of a tensor that it reached later, or of a moment of one). finite=yes: nothing that the program returns is bad,
else something is.
"""
import ast
import pathlib
import re
from dataclasses import dataclass, field

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
KEYS = {"op", "phase", "kind", "mechanism", "category", "severity", "step", "findings", "into", "reaches", "finite"}
NEEDED = {"op", "phase", "kind", "mechanism", "category"}


@dataclass
class Case:
    """One program. `allowed` is None for a bug, else the worst severity that may be reported of it."""
    name: str
    file: pathlib.Path
    line: int | None
    allowed: str | None = None
    expect: dict = field(default_factory=dict)
    wrong: str | None = None

    @property
    def finite(self):
        return self.allowed is not None or self.expect.get("finite") == ["yes"]


def case_of(path, lines, function):
    body = list(enumerate(lines[function.lineno - 1:function.end_lineno], function.lineno))
    said = " ".join(text.split("# expect:")[1] for _, text in body if "# expect:" in text).split()
    marked = [number for number, text in body if text.endswith("# BUG")]
    wrong = " ".join(text.split("# wrong:")[1].strip() for _, text in body if "# wrong:" in text)
    case = Case(function.name, path, None, wrong=wrong or None)
    if said in (["nothing"], ["warning"]):
        case.allowed = {"nothing": "none", "warning": "warning"}[said[0]]
        right = not marked
    else:
        pairs = [re.fullmatch(r"(\w+)=(.+)", one).groups() for one in said]
        case.expect = {key: values.split(",") for key, values in pairs}
        case.line = marked[0] if marked else None
        right = len(marked) == 1 and NEEDED <= set(case.expect) <= KEYS
    if not right:
        raise ValueError(f"{path.name}: {function.name}: its comments do not say what is expected")
    return case


def cases_of(path):
    text = path.read_text()
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return [case_of(path, text.splitlines(), function) for function in functions if "# expect:" in
            ast.get_source_segment(text, function)]


def all_cases():
    return [case for path in sorted(PROGRAMS.glob("*.py")) for case in cases_of(path)]
