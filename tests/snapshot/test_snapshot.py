"""The normal form of reports, and the comparison of two snapshots."""
import copy
import json
import subprocess
import sys

import pytest

import normal_form
import run_numsan
import snapshot
import snapshot_programs
import snapshot_runs

ROOT, FOLDER = "/home/me/numsan", "/tmp/snapshot-x1/tmpq"
SNAPSHOT = run_numsan.REPO / "tests" / "snapshot" / "snapshot.py"
FRAMES = [
    {"kind": "python", "file": f"{ROOT}/tests/suite/programs/p01.py", "line": 3, "function": "loss"},
    {"kind": "python", "file": "/v/lib/python3.11/site-packages/torch/a.py", "line": 9, "function": "nll"},
    {"kind": "autograd", "file": None, "line": None, "function": "LogBackward0"},
    {"kind": "python", "file": f"{ROOT}/tests/support/fork_server.py", "line": 60, "function": "<module>"}]
FINDING = {"op": "aten::log", "seq": 119, "step": 3, "title": "first NaN of this run", "stack": FRAMES,
           "location": {"file": f"{ROOT}/tests/suite/programs/p01.py", "line": 3, "function": "loss",
                        "code": "x.log()"},
           "inputs": [{"name": "input[0]", "absmax": 0.5, "first_bad": {"index": [7], "bits": "0x7fc00000"}}],
           "evidence": ["<function f at 0x7f0012345678> read it"], "category": {"id": "N4", "confidence": 0.8664518960},
           "contaminated": [{"kind": "gradient", "name": "weight", "since_step": 3}]}
REPORT = {"schema": "numsan.report/1", "tool": {"version": "0.1"}, "verdict": "findings",
          "run": {"pid": 42, "argv": ["x"], "host": "h", "started": "now", "process": "boot/42", "steps": 5,
                  "rank": None},
          "coverage": {"ops": 181, "scanned": 155}, "cost": {"wall_s": 1.5}, "noted": {"births": 1, "absorbed": 0},
          "findings": [FINDING]}


def left(*reports, **more):
    return {"status": 0, "stdout": "", "texts": [], "pid": 42, "folder": FOLDER, "reports": list(reports), **more}


def normal(*reports, **more):
    return normal_form.Normal(ROOT, FOLDER).program(left(*reports, **more))


def changed(path, value):
    """REPORT with one leaf set; `path` has keys and numbers."""
    report = copy.deepcopy(REPORT)
    inside = report
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return report


@pytest.mark.parametrize("path, value", [
    (("run", "started"), "later"), (("run", "host"), "other"), (("run", "process"), "boot/43"),
    (("cost", "wall_s"), 2.5), (("tool", "version"), "0.2"),
    (("findings", 0, "evidence", 0), "<function f at 0x7f00aaaaaaaa> read it"),
    (("findings", 0, "stack", 1, "line"), 10), (("findings", 0, "stack", 3, "line"), 61),
    (("findings", 0, "location", "file"), f"{ROOT}/tests/suite/programs/p01.py")], ids=str)
def test_what_differs_between_runs_is_dropped(path, value):
    assert normal(changed(path, value)) == normal(REPORT)


@pytest.mark.parametrize("path, value", [
    (("verdict",), "clean"), (("coverage", "scanned"), 154), (("noted", "absorbed"), 1), (("run", "steps"), 6),
    (("findings", 0, "op"), "aten::sqrt"), (("findings", 0, "seq"), 120), (("findings", 0, "step"), 4),
    (("findings", 0, "title"), "another NaN"), (("findings", 0, "location", "line"), 4),
    (("findings", 0, "stack", 0, "line"), 4), (("findings", 0, "stack", 2, "function"), "SqrtBackward0"),
    (("findings", 0, "inputs", 0, "absmax"), 0.25),
    (("findings", 0, "inputs", 0, "first_bad", "bits"), "0xff800000"),
    (("findings", 0, "category", "confidence"), 0.8664518961), (("findings", 0, "contaminated", 0, "since_step"), 2),
    (("findings",), []), (("findings", 0, "dump"), None)], ids=str)
def test_everything_else_is_kept(path, value):
    """A change of any of it is a difference, of one line for each leaf, which names it."""
    lines = normal_form.differences({"p": normal(REPORT)}, {"p": normal(changed(path, value))})
    assert lines and all(line.startswith("p: reports[0].") for line in lines)
    assert path == ("findings",) or len(lines) == 1


def test_paths_are_those_of_any_checkout():
    text = json.dumps(normal(REPORT, texts=[f"--> {ROOT}/a.py:3\nnumsan: report in {FOLDER}/report-42.json\n"]))
    assert ROOT not in text and FOLDER not in text and "report-PID.json" in text
    moved = json.loads(json.dumps(REPORT).replace(ROOT, "/elsewhere"))
    assert normal_form.Normal("/elsewhere", FOLDER).program(left(moved)) == normal(REPORT)


def test_reports_of_children_follow_in_the_order_of_their_content():
    children = [changed(("run", "pid"), pid) for pid in (50, 51)]
    for child, steps in zip(children, (9, 8)):
        child["run"]["steps"] = steps
    one, other = normal(children[0], REPORT, children[1]), normal(children[1], children[0], REPORT)
    assert one == other and [report["run"]["steps"] for report in one["reports"]] == [5, 8, 9]


def test_a_list_of_names_without_an_order_is_sorted():
    names = [{"kind": "gradient", "name": name, "since_step": 3} for name in ("weight", "bias")]
    assert normal(changed(("findings", 0, "contaminated"), names)) == \
        normal(changed(("findings", 0, "contaminated"), names[::-1]))


def test_differences():
    before = {"a": {"x": 1, "list": [1, 2], "gone": {}}, "only": {}}
    after = {"a": {"x": 1.0, "list": [1, 2, 3], "new": None}, "other": {}}
    assert normal_form.differences(before, before) == []
    assert normal_form.differences(before, after) == [
        "a: gone: {} -> absent", "a: list[2]: absent -> 3", "a: new: absent -> null", "a: x: 1 -> 1.0",
        "only: only before", "other: only after"]


def test_what_differs_runs_again(capsys):
    """A program whose reports vary is as before in one of the runs; one that has changed never is."""
    before, runs = {"steady": {"x": 1}, "unsteady": {"x": 1}, "changed": {"x": 1}}, []

    def run(names):
        runs.append(names)
        return {name: {"x": 1 if name == "unsteady" and len(runs) == 2 else 3} for name in names}

    taken = {"steady": {"x": 1}, "unsteady": {"x": 2}, "changed": {"x": 2}, "new": {"x": 2}}
    snapshot.settle(taken, before, run)
    assert taken == {"steady": {"x": 1}, "unsteady": {"x": 1}, "changed": {"x": 2}, "new": {"x": 2}}
    assert runs == [["unsteady", "changed"]] * 2 + [["changed"]] * (snapshot.AGAIN - 2)
    assert capsys.readouterr().out == "not the same in every run: unsteady: as before in run 3, else not in x\n"


def test_an_unreadable_report_is_said():
    assert normal(None)["reports"] == ["not readable"]


@pytest.mark.parametrize("after, status, said", [(0, 0, "no difference in 1 programs\n"),
                                                 (3, 1, "p: status: 0 -> 3\n")])
def test_exit_status_of_compare(after, status, said, tmp_path):
    for name, value in (("before", 0), ("after", after)):
        (tmp_path / name).write_text(json.dumps({"p": {"status": value}}))
    done = subprocess.run([sys.executable, SNAPSHOT, "compare", tmp_path / "before", tmp_path / "after"],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (status, said), done.stderr


def test_every_program_has_its_place():
    names = [program.name for program in snapshot_programs.all_programs()]
    assert len(set(names)) == len(names)
    files = {path for program in snapshot_programs.all_programs() for path in program.command}
    for folder in ("suite/programs", "suite/controls", "twin/programs"):
        paths = {path for path in (snapshot_programs.TESTS / folder).glob("*.py") if path.stem != "state"}
        assert paths and paths <= files


def test_a_fork_reports_what_a_process_of_its_own_does(warm, tmp_path):
    """Also where it is clean: the bad value at the end adds what it is, and nothing else."""
    bug = run_numsan.REPO / "tests" / "programs" / "log_of_negative"
    server = snapshot_runs.Server(tmp_path)
    for name in ("victim", "twin"):
        program = snapshot_programs.Program(name, [bug / f"{name}.py"])
        forked = server.watched(program)
        alone = snapshot_runs.watched_alone(program, tmp_path)
        forked, alone = (normal_form.Normal(run_numsan.REPO, one["folder"]).program(one) for one in (forked, alone))
        if name == "victim":
            assert normal_form.differences({name: alone}, {name: forked}) == []
            continue
        assert forked["reports"] == [] and forked["text"] == [] == alone["text"]
        [mine], [own] = forked["clean"], alone["reports"]
        assert mine["findings"] == [] == own["findings"] and mine["run"]["steps"] == own["run"]["steps"]
        assert own["noted"] == {"births": 0, "escaped": 0, "absorbed": 0}
        assert mine["noted"] == {"births": 1, "escaped": 1, "absorbed": 0}
        added = {key: mine["coverage"][key] - own["coverage"][key] for key in ("ops", "scanned")}
        assert added["ops"] <= 4 and added["scanned"] <= 4, added
    server.close()
