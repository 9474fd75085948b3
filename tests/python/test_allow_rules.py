"""Rules of a test's mark are matched as the library matches those of an allow-list."""
import sys

import pytest
import run_numsan

sys.path[:0] = [str(run_numsan.REPO / "python"), str(run_numsan.REPO / "host/replay")]
import def_tables  # noqa: E402
from numsan import _allow  # noqa: E402

PROGRAM = """
import torch
from other import arc
class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Sigmoid(), torch.nn.Softplus()
    def forward(self, x):
        return x.log().sum() + x.log2().sum() + x.log10().sum()
model = Head()
bad = -2 * torch.ones(2)
float(model(bad))
float(bad.acos().sum())
float(bad.asin().sum())
float(arc(bad).sum())
float(bad.log1p().sum())
float(bad.rsqrt().sum())
float(torch.zeros(2).reciprocal().sum())
"""
OTHER = "def arc(x):\n    return x.acosh()\n"
# The first that matches counts. Those that match nothing are near misses.
RULES = ("op:log", "op:aten::log file:program.py:8", "op:aten::log file:other.py", "file:rogram.py",
         "file:program.py:99", "module:mod", "module:model.*", "category:N8", "code:NS115", "op:aten::log",
         "op:aten::log2 module:m*l", "file:./other.py", "file:*.py:13", "file:program.py:14", "op:aten::log1*",
         "code:NS102", "category:N2")


def test_as_the_library_does(warm, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "known.txt").write_text("\n".join(RULES))
    all_of_them = run_numsan.run_watched_fork(tmp_path / "program.py", cwd=tmp_path)
    assert len(all_of_them.findings) > 6, all_of_them.describe()
    done = run_numsan.run_watched_fork(tmp_path / "program.py", cwd=tmp_path, options={"allow": tmp_path / "known.txt"})
    matched = dict.fromkeys(RULES, 0)
    left = []
    for finding in all_of_them.findings:
        rule = next((rule for rule in RULES if _allow.allows([_allow.rule(rule)], finding)), None)
        if rule is None:
            left.append(finding["fingerprint"])
        else:
            matched[rule] += 1
    assert left and sum(map(bool, matched.values())) >= 5, matched
    assert [finding["fingerprint"] for finding in done.findings] == left, done.describe()
    suppressed = {entry["rule"]: entry["count"] for entry in done.report["suppressed"]}
    assert suppressed == matched, done.describe()


@pytest.mark.parametrize("text", ["", "# nothing else", "op:aten::log\nop:aten::exp"])
def test_what_is_no_rule(text):
    with pytest.raises(ValueError, match="^allow: "):
        _allow.rule(text)


CASES = run_numsan.REPO / "tests/host/finding/allow_cases.def"


def place(file, line):
    return {"file": file, "line": int(line)} if file else None


def findings():
    """Those of the table, as the report has them; empty text there is nothing here."""
    for values, _ in def_tables.rows(CASES, "NUMSAN_ALLOW_FINDING"):
        name, op, file, line, module, code, category, *forward = values
        forward_op, forward_file, forward_line, forward_module = forward
        yield name, {
            "op": op, "location": place(file, line), "module": module or None, "code": code,
            "category": {"id": category}, "user_location": None, "forward": None if not forward_op else {
                "op": forward_op, "location": place(forward_file, forward_line), "module": forward_module or None}}


def outcome(rule, finding):
    try:
        conditions = _allow.rule(rule)
    except ValueError:
        return "refused"
    return "matches" if _allow.allows([conditions], finding, "/start") else "differs"


def test_cases_that_the_library_is_asked_too():
    known = dict(findings())
    cases = [values for values, _ in def_tables.rows(CASES, "NUMSAN_ALLOW_CASE")]
    assert len(cases) > 50 and set(known) == {name for _, name, _ in cases}
    wrong = [(rule, name, wanted) for rule, name, wanted in cases if outcome(rule, known[name]) != wanted]
    assert not wrong


def test_codes_and_categories_are_those_of_the_tables():
    tables = run_numsan.REPO / "host/finding"
    mechanisms = {values[0] for values, _ in def_tables.rows(tables / "mechanisms.def", "NUMSAN_MECHANISM")}
    categories = {values[0] for values, _ in def_tables.rows(tables / "categories.def", "NUMSAN_CATEGORY")}
    assert (_allow.CODES, _allow.CATEGORIES) == (mechanisms, categories)
