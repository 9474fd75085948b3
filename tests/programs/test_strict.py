"""With escape=any: values that are born and go nowhere, each with its line and what became of it. Each program runs
with a bad value and without; without the option both are silent."""
import pytest

import run_numsan

pytestmark = pytest.mark.xdist_group("strict")  # one worker has the process of which they are forks
STRICT = {"escape": "any"}

# "bad" or "good" is the argument. BORN: the line of the birth. MET: that of the last operator that met the value.
HEAD = """
import sys, torch
torch.manual_seed(0)
bad = "bad" in sys.argv
x = torch.tensor([-1.0, 2.0] if bad else [1.0, 2.0])
"""
# what it does -> (the program behind the head, operator, fate, the operator that met it last)
CASES = {
    "never read": ("""
with torch.no_grad():
    y = torch.log(x)  # BORN
print("done")
""", "aten::log", "unread", None),
    "an evaluation loop that does not use its mean": ("""
seen = torch.tensor([0.0, 3.0] if bad else [2.0, 3.0])
hits = torch.tensor([0.0, 2.0])
for epoch in range(3):
    per_class = hits / seen  # BORN
    mean = per_class.mean()  # MET
""", "aten::div", "read_last", "aten::mean"),
    "masked away": ("""
y = torch.log(x)  # BORN
z = torch.where(x > 0, y, torch.zeros(()))  # MET
print(float(z.sum()))
""", "aten::log", "masked", "aten::where"),
    "replaced in place": ("""
y = torch.log(x)  # BORN
y.nan_to_num_()  # MET
print(float(y.sum()))
""", "aten::log", "masked", "aten::nan_to_num_"),
    "overwritten": ("""
scores = torch.zeros(2)
for epoch in range(3):
    torch.log(x, out=scores)  # BORN
    scores.zero_()  # MET
print(float(scores.sum()))
""", "aten::log", "overwritten", "aten::zero_"),
    "an overflow that a division ends": ("""
t = torch.tensor([-100.0 if bad else -1.0])
e = torch.exp(-t)  # BORN
p = torch.reciprocal(1 + e)  # MET
print(float(p) < 0.5)
""", "aten::exp", "finite", "aten::reciprocal"),
    "asked about": ("""
y = torch.log(x)  # BORN
keep = ~torch.isnan(y)  # MET
print(int(keep.sum()) > 0)
""", "aten::log", "no_floats", "aten::isnan"),
    "a batch that is skipped": ("""
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    batch = torch.rand(3, 2) + 1
    if bad and step == 2:
        batch[1] = -1
    features = torch.log(batch)  # BORN
    if torch.isnan(features).any():  # MET
        continue
    optimizer.zero_grad()
    model(features).pow(2).mean().backward()
    optimizer.step()
""", "aten::log", "no_floats", "aten::isnan"),
    "a gradient that is dropped": ("""
w = torch.tensor([0.0, 1.0] if bad else [4.0, 1.0], requires_grad=True)
norm = w.sqrt().sum()  # BORN
for attempt in range(2):
    penalty, = torch.autograd.grad(norm, w, retain_graph=True)
    clipped = penalty.clamp(max=1.0)  # MET
print(float(clipped.sum()))
""", "aten::div", "finite", "aten::clamp"),
    "a masked row": ("""
mask = torch.tensor([[False, False], [bad, True]])
scores = torch.zeros(2, 2).masked_fill(mask, float("-inf"))
weights = torch.softmax(scores, dim=-1)  # BORN
weights = weights.masked_fill(mask, 0.0)  # MET
print(float(weights.sum()) > 0)
""", "aten::_softmax", "masked", "aten::masked_fill"),
}

# What only looks like it: infinities of the program's own, and a value that the program reads.
HEALTHY = """
import torch
best = torch.tensor(float("inf"))
limits = torch.full((3,), float("-inf"))
for step in range(3):
    best = torch.minimum(best, torch.rand(()))
    limits = torch.maximum(limits, torch.rand(3))
scores = torch.zeros(2, 2).masked_fill(torch.eye(2, dtype=torch.bool), -torch.inf)
weights = torch.softmax(scores, dim=-1)
table = torch.empty(4, 4).fill_(torch.inf)
rows = torch.rand(4, 3)
rows[1, 2] = float("nan")  # is missing
rows = torch.where(rows.isnan(), rows.nanmean(), rows)
slots = rows.new_full((2,), float("nan"))
padded = torch.nested.to_padded_tensor(torch.nested.nested_tensor([torch.rand(2), torch.rand(3)]), float("-inf"))
lengths = (padded != -torch.inf).sum(1)
point = torch.zeros(3, requires_grad=True)
torch.nn.functional.normalize(point, dim=0).sum().backward()
with torch.autograd.profiler.record_function("numsan:ignore"):
    known = torch.log(torch.tensor([-1.0]))
print(float(best) < 1)
"""


def written(tmp_path, text):
    program = tmp_path / "program.py"
    program.write_text(text)
    return program


@pytest.mark.parametrize("case", CASES)
def test_what_became_of_a_value(case, warm, tmp_path):
    text, op, fate, met_by = CASES[case]
    program = written(tmp_path, HEAD + text)
    strict = run_numsan.run_watched_fork(program, options=STRICT, args=["bad"], cwd=tmp_path)
    assert strict.returncode == 0 and len(strict.findings) == 1, strict.describe()
    run_numsan.validate(strict.report)
    found, = strict.findings
    last = found["escape"]["last"]
    assert (found["severity"], found["op"], found["escape"]["into"]) == ("info", op, "output"), strict.describe()
    assert found["location"]["line"] == run_numsan.marked_line(program, "# BORN"), strict.describe()
    assert (last["fate"], last["op"]) == (fate, met_by), strict.describe()
    met_at = run_numsan.marked_line(program, "# MET") if met_by else None
    assert (last["location"] or {}).get("line") == met_at, strict.describe()
    assert strict.stderr.startswith("info[NS") and "escaped:  nowhere: " in strict.stderr, strict.describe()
    assert strict.report["noted"]["escaped"] == 0 and strict.report["noted"]["absorbed"] >= 1, strict.describe()


@pytest.mark.parametrize("case", CASES)
def test_without_a_bad_value_nothing_is_said(case, warm, tmp_path):
    program = written(tmp_path, HEAD + CASES[case][0])
    good = run_numsan.run_watched_fork(program, options=STRICT, args=["good"], cwd=tmp_path, clean=True)
    assert good.returncode == 0 and not good.findings and good.stderr == "", good.describe()


@pytest.mark.parametrize("case", CASES)
def test_without_the_option_nothing_is_said(case, warm, tmp_path):
    program = written(tmp_path, HEAD + CASES[case][0])
    plain = run_numsan.run_watched_fork(program, args=["bad"], cwd=tmp_path, clean=True)
    assert plain.returncode == 0 and not plain.findings and plain.stderr == "", plain.describe()
    assert "last" not in str(plain.report["findings"])


def test_infinities_of_the_programs_own_stay_silent(warm, tmp_path):
    healthy = run_numsan.run_watched_fork(written(tmp_path, HEALTHY), options=STRICT, cwd=tmp_path, clean=True)
    assert healthy.returncode == 0 and not healthy.findings, healthy.describe()
    assert "[NS" not in healthy.stderr and "numsan:" not in healthy.stderr, "torch warns of nested tensors, numsan not"


BESIDE_AN_ERROR = """
import torch
torch.manual_seed(0)
w = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([w], lr=0.1)
dropped = torch.log(torch.tensor([-1.0]))  # FIRST
allowed = torch.acos(torch.tensor([2.0]))
for step in range(3):
    a = torch.sqrt(w - 2)  # ERROR
    b = torch.zeros(2) / (w.detach() * 0)  # JOINED
    loss = (a + b).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    other = torch.sqrt(w - 2)
"""


def test_beside_an_error(warm, tmp_path):
    """In the order of birth; a rule holds; the exit status is that of the error alone; each once."""
    program = written(tmp_path, BESIDE_AN_ERROR)
    (tmp_path / "allow").write_text("op:aten::acos\n")
    options = {**STRICT, "allow": str(tmp_path / "allow"), "fail_on": "warning"}
    result = run_numsan.run(program, options=options, cwd=tmp_path)
    assert result.returncode == 66, result.describe()
    lines = [run_numsan.marked_line(program, mark) for mark in ("# FIRST", "# ERROR", "# JOINED")]
    assert [(f["severity"], f["location"]["line"]) for f in result.findings] == \
        list(zip(("info", "error", "info"), lines)), result.describe()
    assert result.findings[2]["escape"]["last"]["fate"] == "joined", result.describe()
    assert {"rule": "op:aten::acos", "count": 1} in result.report["suppressed"], result.describe()
    kinds = [line.split("[")[0] for line in result.stderr.splitlines() if line.startswith(("error[", "info["))]
    assert kinds == ["error", "info", "info"], result.describe()


def test_info_is_no_reason_to_fail(warm, tmp_path):
    program = written(tmp_path, HEAD + CASES["never read"][0])
    result = run_numsan.run(program, options={**STRICT, "fail_on": "warning", "halt": "1"}, args=["bad"], cwd=tmp_path)
    assert result.returncode == 0 and [f["severity"] for f in result.findings] == ["info"], result.describe()
    assert result.stdout == "done\n"
    for form, shown in {"sarif": '"level": "note"', "junit": 'failures="0"', "markdown": "| info |"}.items():
        out = run_numsan.run_plain_command([run_numsan.COMMAND, "report", result.report_path, "--format", form])
        assert out.returncode == 0 and shown in out.stdout, (form, out.stdout, out.stderr)
