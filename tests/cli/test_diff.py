"""numsan diff on pairs of real reports: small programs before and after a change, and what the change did."""
import json
import os
import re
import subprocess

import made_reports
import pytest
import run_numsan

pytestmark = pytest.mark.usefixtures("warm")

LOSSES = """
import torch


def criterion(values):
    return torch.log(values).mean()
"""
TRAIN = """
import torch
from losses import criterion

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(x).square().sqrt()


model = Net()
torch.nn.init.constant_(model.head.weight, 0.25)
torch.nn.init.zeros_(model.head.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
for step in range(6):
    scale = 1.0 if step < 3 else -1.0
    loss = criterion(scale * model(torch.ones(8, 4)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# The warning: the value is only read. The error: it gets into the loss.
READ = TRAIN.replace("    optimizer.zero_grad()", "    print(loss.item())\n    loss = model(torch.ones(8, 4)).mean()\n"
                     "    optimizer.zero_grad()")
ZERO = TRAIN.replace("torch.ones(8, 4)", "torch.zeros(8, 4) + (step < 4)")
CURED = LOSSES.replace("log(values)", "log(values.abs())")
PLAIN = LOSSES.replace("torch.log(values)", "values")


def program(train=TRAIN, losses=LOSSES, name="losses"):
    return {"train.py": train, f"{name}.py": losses}


TWO = TRAIN.replace("    optimizer.step()", "    optimizer.step()\n    print((model.head.weight / 0).sum().item())")

# Two lines that read the same.
EQUAL = """
import torch


def criterion(values):
    part = FIRST
    print(torch.log(part).sum().item())
    part = SECOND
    print(torch.log(part).sum().item())
    return values.mean()
"""


def equal(first, second):
    return program(losses=EQUAL.replace("FIRST", first).replace("SECOND", second))


# Name -> (before, after, the changes, exit status)
PAIRS = {
    "same program": (program(), program(), [], 0),
    "line moved": (program(), program(losses="# above\n\n" + LOSSES), ["moved NS101 losses.py:8, was losses.py:6"], 0),
    "file renamed": (program(), program(TRAIN.replace("from losses", "from objective"), name="objective"),
                     ["moved NS101 objective.py:6, was losses.py:6"], 0),
    "file renamed and edited above": (
        program(), program(TRAIN.replace("from losses", "from objective"), "# above\n" + LOSSES, "objective"),
        ["moved NS101 objective.py:7, was losses.py:6"], 0),
    "function moved to another line and renamed": (
        program(), program(TRAIN.replace("criterion", "objective"), "\n\n" + LOSSES.replace("criterion", "objective")),
        ["moved NS101 losses.py:8, was losses.py:6; in the function objective, was criterion"], 0),
    "operator changed": (program(), program(losses=LOSSES.replace("log", "sqrt")),
                         ["appeared NS101 ", "vanished NS101 "], 1),
    "line's text changed": (program(), program(losses=LOSSES.replace("values", "v")),
                            ["appeared NS101 ", "vanished NS101 "], 1),
    "new finding": (program(), program(TWO), ["appeared NS103 "], 1),
    "finding where there was none": (program(losses=CURED), program(), ["appeared NS101 "], 1),
    "fixed finding": (program(), program(losses=CURED), ["vanished NS101 "], 0),
    "one of two fixed": (program(TWO), program(), ["vanished NS103 "], 0),
    "other seed": (program(), program(TRAIN.replace("manual_seed(0)", "manual_seed(7)")), [], 0),
    "a step later": (program(), program(TRAIN.replace("step < 3", "step < 4")), [], 0),
    "more severe": (program(READ), program(TRAIN), ["more severe NS101 error[NS101], was warning[NS101]"], 1),
    "less severe": (program(TRAIN), program(READ), ["less severe NS101 warning[NS101], was error[NS101]"], 0),
    "function renamed": (
        program(), program(TRAIN.replace("criterion", "objective"), LOSSES.replace("criterion", "objective")),
        ["moved NS101 in the function objective, was criterion"], 0),
    "code inserted above in the function": (
        program(), program(losses=LOSSES.replace("    return", "    values = values.clone()\n    return")),
        ["moved NS101 losses.py:7, was losses.py:6"], 0),
    "two equal lines swapped": (equal("torch.ones(1)", "values"), equal("values", "torch.ones(1)"),
                                ["moved NS101 losses.py:7, was losses.py:9"], 0),
    "two equal lines swapped, both of them bad": (equal("2 * values", "values"), equal("values", "2 * values"), [], 0),
    "one of two equal lines cured": (equal("2 * values", "values"), equal("torch.ones(1)", "values"),
                                     ["vanished NS101 "], 0),
    "allow-listed": (program(), {**program(), "known.txt": "op:aten::log"}, ["vanished NS101 "], 0),
    "no longer allow-listed": ({**program(), "known.txt": "op:aten::log"}, program(), ["appeared NS101 "], 1),
    "module renamed": (program(losses=PLAIN, train=ZERO),
                       program(losses=PLAIN, train=ZERO.replace("model", "network")),
                       ["moved NS102 in network, was model"], 0),
}


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Runs a program once; the path of its report. `known.txt` is its allow-list."""
    known = {}

    def report_of(files):
        key = json.dumps(files)
        if key not in known:
            folder = tmp_path_factory.mktemp("run")
            for name, text in files.items():
                (folder / name).write_text(text)
            if "known.txt" in files:
                result = run_numsan.run(folder / "train.py", cwd=folder, options={"allow": folder / "known.txt"})
            else:
                result = run_numsan.run_watched_fork(folder / "train.py", cwd=folder, clean="abs" in key and files[
                    "train.py"] == TRAIN)
            assert result.returncode == 0 and result.report is not None, result.describe()
            result.report["run"]["cwd"] = str(folder)  # of the fork; numsan was attached elsewhere
            (folder / "report.json").write_text(json.dumps(result.report))
            known[key] = folder / "report.json"
        return known[key]
    return report_of


def diff(*arguments, status):
    done = subprocess.run([run_numsan.COMMAND, "diff", *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("name", PAIRS)
def test_pair(reported, name):
    before, after, expected, status = PAIRS[name]
    sides = reported(before), reported(after)
    document = json.loads(diff(*sides, "--format", "json", status=status).stdout)
    lines = [f"{one['change']} {(one['now'] or one['before'])['code']} {'; '.join(one['differences'])}"
             for one in document["changes"]]
    assert len(lines) == len(expected) and all(map(str.startswith, lines, expected)), lines
    text = diff(*sides, status=status).stdout
    said = re.findall(r"^(appeared|more severe|moved|less severe|vanished): \w+\[(NS\d+)\]: .*\n  --> (\S+)"
                      r"(?:  module.*)?\n      (.*)\n      step \d+\n((?:   = .*\n)*)", text, re.M)
    shown = [f"{change} {code} {'; '.join(re.findall('   = (.*)', differences))}"
             for change, code, _, _, differences in said]
    assert shown == lines, text
    for one, (_, _, place, code, _) in zip(document["changes"], said):
        location = (one["now"] or one["before"])["location"]
        assert (place, code) == (f"{os.path.basename(location['file'])}:{location['line']}", location["code"]), text
    counts = ", ".join(f"{number} {change}" for change, number in document["counts"].items())
    assert text.endswith(f"numsan: {counts}\n"), text


def test_what_an_allow_list_left_out_is_not_said_to_be_gone(reported):
    shown, allowed = (reported(PAIRS["allow-listed"][side]) for side in (0, 1))
    said = "1 of 1 report with findings that an allow-list left out: what"
    assert f"numsan: {allowed}: {said} vanished may be one of them\n" in diff(shown, allowed, status=0).stdout
    assert f"numsan: {allowed}: {said} appeared may have been one of them\n" in diff(allowed, shown, status=1).stdout
    document = json.loads(diff(shown, allowed, "--format", "json", status=0).stdout)
    assert (document["base"]["suppressed"], document["new"]["suppressed"]) == (0, 1)
    rendered = diff(shown, allowed, "--format", "markdown", status=0).stdout.replace("\\", "")
    assert f"{allowed}: {said} vanished may be one of them\n" in rendered
    assert "allow-list" not in diff(allowed, allowed, status=0).stdout, "nothing vanished"


def test_folders_of_ranks(tmp_path):
    """A night of four ranks against one in which a rank more has the finding, and another of its own."""
    night = made_reports.night()
    made_reports.write(tmp_path / "base", night)
    assert "0 appeared" in diff(tmp_path / "base", tmp_path / "base", status=0).stdout
    night[2]["findings"] = [night[0]["findings"][0], made_reports.finding(9, severity="warning")]
    made_reports.write(tmp_path / "new", night)
    document = json.loads(diff(tmp_path / "base", tmp_path / "new", "--format", "json", status=1).stdout)
    assert document["counts"] == {"appeared": 1, "more severe": 0, "moved": 0, "less severe": 0, "vanished": 0,
                                  "unchanged": 2}
    assert document["new"] == {"path": str(tmp_path / "new"), "reports": 4, "incomplete": 1, "suppressed": 0}


@pytest.fixture
def sides(tmp_path):
    """Two reports with a change of each kind between them; made, so that the golden files do not depend on torch."""
    base, new = made_reports.example(), made_reports.example(cwd="/home/user/other")
    new["findings"][0]["location"].update(file="/home/user/other/losses.py", line=44)
    new["findings"][0]["step"] = 17
    make = made_reports.finding
    base["findings"] += [make(1), make(2, severity="warning"), make(3), make(4), make(5)]
    new["findings"] += [make(2), make(3, severity="info", title="a | `b` @c"), make(5),
                        make(6, location=None, module=None)]
    new["verdict"] = "incomplete"
    made_reports.write(tmp_path, [base], "base.json")
    made_reports.write(tmp_path, [new], "new.json")
    return tmp_path


@pytest.mark.parametrize("name, suffix", [("text", "txt"), ("json", "json"), ("markdown", "md")])
def test_golden(sides, name, suffix):
    done = subprocess.run([run_numsan.COMMAND, "diff", "base.json", "new.json", "--format", name], capture_output=True,
                          text=True, cwd=sides)
    path = made_reports.GOLDEN / "formats" / f"diff.{suffix}"
    if os.environ.get("NUMSAN_WRITE_GOLDEN"):
        path.write_text(done.stdout)
    assert (done.stdout, done.stderr, done.returncode) == (path.read_text(), "", 1)


def test_what_cannot_be_read_is_status_2(sides):
    done = diff(sides / "base.json", sides / "gone.json", status=2)
    assert re.fullmatch(r"numsan: \S+gone.json: cannot be read: No such file or directory\n", done.stderr)
    assert done.stdout == ""


def test_a_long_difference_fits_a_comment(tmp_path):
    new = made_reports.example()
    new["findings"] = [made_reports.finding(number) for number in range(900)]
    made_reports.write(tmp_path, [made_reports.example()], "base.json")
    made_reports.write(tmp_path, [new], "new.json")
    shown = diff(tmp_path / "base.json", tmp_path / "new.json", "--format", "markdown", status=1).stdout
    left = 901 - shown.count("\n| appeared") - shown.count("\n| vanished")
    assert len(shown) < 65536 and shown.endswith(
        f"\nleft out for their length: {left} further findings\n\n`numsan diff` shows all\n")
