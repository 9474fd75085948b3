"""The scorer against reports made by hand, whose figures are known."""
import json

import pytest

import intervals
import markers
import manifest
import reports
import scoring
import tables
import targets

pytestmark = pytest.mark.quick
PROGRAM = {
    "id": "p01", "file": "programs/p01_x.py", "phase": "backward", "mechanism": "SING",
    "category": "N3", "category_alt": ["N2"], "birth_op": ["aten::div", "aten::mul"],
    "kind": ["+inf"], "line": 10, "lines_ok": [10, 12], "precursor_lines": [5],
    "intended_lines": [7], "first_step": 2, "severity": "error", "loss_stays_finite": False,
    "dtype": "fp32", "needs": [], "family": "slope", "fragile": False, "fix_kind": "eps"}
CONTROL = {"id": "q01", "file": "controls/q01_x.py", "tempts": "mask", "max_severity": "info",
           "intended_lines": [], "dtype": "fp32", "needs": []}


def finding(**changes):
    """A finding as numsan reports it, right about PROGRAM unless changed."""
    line = changes.pop("line", 10)
    base = {"severity": "error", "op": "aten::div", "phase": "backward", "step": 2, "seq": 1,
            "mechanism": "SING", "location": {"file": "/somewhere/p01_x.py", "line": line},
            "category": {"id": "N3", "confidence": 0.8},
            "alternatives": [{"id": "N2", "confidence": 0.1}], "fixes": [["where"], ["clamp", "eps"]]}
    return {**base, **changes}


def outcome(*findings, **entry):
    return scoring.program_outcome({**PROGRAM, **entry},
                                   [reports.flat(one, "p01_x.py") for one in findings])


def shares_of(result):
    return {key for key in scoring.SHARES if result[key]}


def test_a_right_finding_is_right_everywhere():
    assert shares_of(outcome(finding())) == set(scoring.SHARES)


def test_nothing_found_is_wrong_everywhere():
    assert shares_of(outcome()) == set()


@pytest.mark.parametrize("changes, lost", [
    ({"op": "aten::log"}, {"op", "first_op"}),
    ({"op": "aten::mul.out"}, set()),
    ({"line": 12}, {"line_strict"}),
    ({"line": 11}, {"line_strict", "line_lenient", "first_op", "help"}),
    ({"location": None}, {"line_strict", "line_lenient", "first_op", "help"}),
    ({"location": {"file": "/torch/nn/x.py", "line": 10}},
     {"line_strict", "line_lenient", "first_op", "help"}),
    ({"fixes": [["where"], ["clamp"], []]}, {"help"}),
    ({"fixes": []}, {"help"}),
    ({"phase": "forward"}, {"phase"}),
    ({"step": 3}, {"step"}),
    ({"mechanism": "DIV0"}, {"mechanism"}),
    ({"severity": "warning"}, {"recall_nonfinite", "recall_underflow"}),
    ({"category": {"id": "N2", "confidence": 0.5}, "alternatives": [{"id": "N3"}]},
     {"category_top1"}),
    ({"category": {"id": "U", "confidence": 0.0}, "alternatives": []},
     {"category_top1", "category_top1_lenient", "category_top2"}),
])
def test_what_one_mistake_costs(changes, lost):
    assert shares_of(outcome(finding(**changes))) == set(scoring.SHARES) - lost


def test_the_first_error_counts_and_precursors_are_passed_over():
    warning = finding(severity="warning", op="aten::exp", line=30)
    precursor = finding(op="aten::mul", line=5)
    assert outcome(warning, precursor, finding())["first_op"]
    assert not outcome(warning, finding(), severity="warning")["first_op"]


def test_help_is_of_programs_whose_accepted_fix_is_known():
    known = {**PROGRAM, "id": "t001"}
    unknown = {key: value for key, value in PROGRAM.items() if key != "fix_kind"}
    said = {"p01": finding(), "t001": finding(), "t002": finding(fixes=[["other"]])}
    runs = {name: {"findings": [reports.flat(one, "p01_x.py")]} for name, one in said.items()}
    bugs = [unknown, known, {**PROGRAM, "id": "t002", "fix_kind": "other"}]
    scored = scoring.score({"programs": bugs, "controls": []}, runs)
    assert [one["help"] for one in scored["programs"]] == [None, True, False]
    assert (scored["metrics"]["help"]["good"], scored["metrics"]["help"]["of"]) == (1, 2)
    del runs["t001"]["findings"][0]["fixes"]  # a result that was stored before
    assert not scoring.program_outcome(known, runs["t001"]["findings"])["help"]


def test_findings_on_intended_lines_are_counted():
    assert outcome(finding(), finding(line=7))["on_intended"] == [7]


def test_an_open_step_is_not_counted():
    assert outcome(finding(step=9), first_step=None)["step"] is None


def test_signals():
    assert scoring.signal_of(PROGRAM) == "nonfinite"
    assert scoring.signal_of({**PROGRAM, "kind": ["zero"]}) == "underflow"
    assert scoring.signal_of({**PROGRAM, "family": "muted"}) == "muted"


def test_a_control_may_be_as_loud_as_it_says():
    info, warning = ({"severity": level} for level in ("info", "warning"))
    assert not scoring.control_outcome(CONTROL, [info])["false_alarm"]
    assert scoring.control_outcome(CONTROL, [info, warning])["false_alarm"]


def test_scores_of_a_small_suite():
    suite = {"programs": [{**PROGRAM, "id": f"p0{number}"} for number in range(1, 5)],
             "controls": [CONTROL]}
    right = {"findings": [reports.flat(finding(), "p01_x.py")], "exit_status": 0,
             "bare_exit_status": 0, "same_output": True}
    unsure = {**right, "findings": [reports.flat(
        finding(category={"id": "N4", "confidence": 0.6}, alternatives=[]), "p01_x.py")]}
    silent = {**right, "findings": [], "same_output": False}
    runs = {"p01": right, "p02": right, "p03": unsure, "p04": silent, "q01": right}
    metrics = scoring.score(suite, runs)["metrics"]
    assert (metrics["recall_nonfinite"]["good"], metrics["recall_nonfinite"]["of"]) == (3, 4)
    assert metrics["recall_underflow"]["of"] == 0
    assert metrics["first_op"]["share"] == 0.75
    assert metrics["category_top1"]["share"] == 0.5
    assert metrics["macro_f1"] == pytest.approx(2 * 2 / (2 * 2 + 2))
    assert metrics["calibration_error"] == pytest.approx((0.4 + 0.6) / 3)
    assert metrics["false_alarms"]["good"] == 1
    assert metrics["disturbed"] == 1
    assert targets.missed(metrics, {"recall_nonfinite": {"at_least": 0.75},
                                    "false_alarms": {"at_most": 1}}) == []
    missed = targets.missed(metrics, {"recall_nonfinite": {"at_least": 0.8},
                                      "false_alarms": {"at_most": 0},
                                      "recall_underflow": {"at_least": 0.5}})
    assert [line.split(":")[0] for line in missed] == ["target missed", "target missed",
                                                       "target not measured"]
    assert "0.75" in tables.results_table({"numsan": metrics, "other": metrics})
    worse = scoring.score(suite, {**runs, "p01": silent})
    lines = list(tables.comparison(suite, scoring.score(suite, runs), worse))
    assert any(line.startswith("programs/p01_x.py: recall, nan and inf lost") for line in lines)
    assert not any("recall, underflow" in line for line in lines)


def test_reports_of_many_processes_are_merged_by_step(tmp_path):
    for name, steps in (("a", [3, 1]), ("b", [2, 5])):
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"findings": [finding(step=step) for step in steps]}))
    (tmp_path / "c.json").write_text("{")
    found, problems = reports.read(tmp_path.glob("*.json"), "p01_x.py")
    assert [one["step"] for one in found] == [2, 3, 1, 5]
    assert len(problems) == 1 and problems[0].startswith("c.json")


def test_flat_findings_of_baselines():
    flat = reports.flat({"op": "aten.log.default", "line": 4, "category": ["N4", "N2"]}, "p.py")
    assert (flat["op"], flat["line"], flat["severity"]) == ("aten::log", 4, "error")
    assert flat["ranking"] == [["N4", None], ["N2", None]]


def test_wilson():
    assert intervals.wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert intervals.wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert intervals.wilson(0, 0) == (0.0, 1.0)


def test_bootstrap():
    gap, (low, high) = intervals.paired_bootstrap([(0, 1)] * 30 + [(1, 1)] * 70, rounds=2000)
    assert gap == pytest.approx(0.3)
    assert 0.18 < low < 0.26 and 0.34 < high < 0.42
    assert intervals.paired_bootstrap([(1, 1)] * 5, rounds=100) == (0.0, (0.0, 0.0))


def test_calibration_and_f1():
    assert intervals.calibration_error([(0.9, True), (0.9, False)]) == pytest.approx(0.4)
    assert intervals.calibration_error([(1.0, True)]) == 0.0
    assert intervals.macro_f1([("N1", "N1"), ("N2", "N1"), ("N2", None)]) == pytest.approx(1 / 3)


GOOD = '''"""a story"""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2 birth_op=aten::log kind=-inf
# label: first_step=2 severity=error loss_stays_finite=no dtype=fp32 model=mlp family=log
# label: needs= fragile=no
import torch
loss = torch.log(torch.zeros(1))  # BUG
'''


@pytest.mark.parametrize("old, new, message", [
    ("", "", None),
    ("phase=forward", "phase=forwards", "2: label phase=forwards: expected one of .*did you mean"),
    ("category_alt=N2", "category_alt=N4", "2: category_alt repeats the category"),
    ("kind=-inf", "kind=inf", "2: label kind: `inf` is none of"),
    ("aten::log", "log", "2: label birth_op: `log` is no op name"),
    ("fragile=no", "fragil=no", "4: label `fragil` is unknown; did you mean fragile"),
    (" fragile=no", "", "1: label `fragile` is missing"),
    ("# BUG", "# BUG here", "6: marker `# BUG` must be the whole comment"),
    ("# BUG", "", "1: 0 lines are marked"),
    ('"""a story"""', "", "1: expected a docstring"),
])
def test_labels_are_checked_with_file_and_line(tmp_path, old, new, message):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "p01_x.py").write_text(GOOD.replace(old, new, 1) if old else GOOD)
    built, errors = manifest.build(tmp_path)
    if message is None:
        assert errors == [] and built["programs"][0]["lines_ok"] == [6]
        assert markers.KINDS[2] in built["programs"][0]["kind"]
    else:
        assert len(errors) == 1
        with pytest.raises(AssertionError, match=f"p01_x.py:{message}"):
            raise AssertionError(errors[0])
