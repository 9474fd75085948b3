"""The arithmetic of the study: proof of harm, figures, other tools' rules. Nothing runs."""
import json
import math

import pytest

import harm
import rivals
import score
import study_runs
from score import Answer, Case

pytestmark = pytest.mark.quick


def case(truth, base="mlp_digits", lines=(3,)):
    return Case(base, "kind" if truth else None, truth, frozenset(lines), {})


def test_effect_size():
    assert harm.cohens_d([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 0.0
    assert harm.cohens_d([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]) == pytest.approx(1.0)
    assert harm.cohens_d([1.0, 1.0], [0.0, 0.0]) == math.inf
    assert harm.cohens_d([0.0, 0.0], [1.0, 1.0]) == -math.inf


def test_rank_test_is_exact():
    assert harm.mann_whitney([4, 5, 6], [1, 2, 3]) == pytest.approx(1 / 20)
    assert harm.mann_whitney([1, 2, 3], [4, 5, 6]) == 1.0
    assert harm.mann_whitney([1, 1, 1], [1, 1, 1]) == 1.0
    assert harm.mann_whitney(list(range(3, 11)), [0, 1, 2]) == pytest.approx(1 / 165)


def test_harm_needs_effect_and_loss():
    healthy, untrained = [0.9, 0.91, 0.92, 0.9, 0.91, 0.92, 0.9, 0.91], [0.1, 0.1, 0.1]
    assert harm.of(healthy, [0.3, 0.2, 0.4], untrained).proven
    assert not harm.of(healthy, [0.91, 0.92, 0.9], untrained).proven
    assert not harm.of(healthy, [0.89, 0.89, 0.89], untrained).proven, "all are lower, but by 3 % of what is learned"
    lost = harm.of(healthy, [math.nan, None, math.inf], untrained)
    assert lost.proven and lost.lost == pytest.approx(1.0)


def test_figure_is_the_last_line_and_more_is_better():
    assert study_runs.figure_of("loss 3\naccuracy 0.5\n") == 0.5
    assert study_runs.figure_of("error 0.25\n") == -0.25
    assert math.isnan(study_runs.figure_of("error nan\n"))
    assert study_runs.figure_of("") is None and study_runs.figure_of("done\n") is None


def test_metrics():
    cases = [case("ND101"), case("ND102"), case("ND107"), case("unscaled-inputs"), case(None), case(None)]
    answers = [[Answer("ND101", 0.9, 3)], [Answer("ND105", 0.5, 3), Answer("ND102", 0.4, 3)], [],
               [Answer("ND107", 0.6, 9)], [], [Answer("ND107", 0.6, 9)]]
    got = score.metrics(cases, answers)
    shares = {key: (value["share"], value["of"]) for key, value in got.items() if isinstance(value, dict)}
    assert shares == {"found": (0.75, 4), "false_alarms": (0.5, 2), "top1": (0.25, 4), "top1_coded": (1 / 3, 3),
                      "top2": (0.5, 4), "exact": (0.25, 4), "line": (1.0, 1)}
    assert got["macro_f1"] == pytest.approx(1 / 4)
    assert got["answers"] == 4
    # Bins: 0.9 is right; 0.6 twice and 0.5 once are wrong.
    assert got["calibration"] == pytest.approx((0.1 + 1.2 + 0.5) / 4)


def test_answer_without_place_or_confidence_is_not_counted_there():
    got = score.metrics([case("ND101"), case("ND101")], [[Answer("ND101")], [Answer("ND101", 1.0, 7)]])
    assert got["top1"]["share"] == 1.0 and got["calibration"] == 0.0 and got["answers"] == 1
    assert got["line"] == {**got["line"], "share": 0.0, "of": 1}


def test_constant_is_chosen_from_the_open_half():
    cases = [case("ND101"), case("ND102", base="wine_tanh"), case("ND102", base="wine_tanh"), case(None)]
    assert score.most_common(cases) == "ND101"


def test_confidences_are_of_the_open_half():
    cases = [case("ND101"), case("ND101"), case("unscaled-inputs"), case(None), case("ND101", base="wine_tanh")]
    said = [Answer("ND101"), Answer("ND101"), Answer("ND107"), Answer("ND101"), Answer("ND108")]
    cases, said = [*cases, case("ND108")], [*said, Answer("ND108", by="model")]
    got = score.confidences({"cases": cases, "tools": {"numsan": [[one] for one in said]}})
    # Of all answers half are right.
    assert got == {"ND101": (2, 3, (2 + 4) / (3 + 8)), "ND107": (0, 1, 4 / (1 + 8))}
    twice = score.confidences({"cases": [case("ND102"), case("ND101")],
                               "tools": {"numsan": [[Answer("ND102"), Answer("ND102")], [Answer("ND102")]]}})
    assert twice == {"ND102": (1, 2, 1 / 2)}, "a run with two losses is one run"


def test_targets():
    measured = {"open": {"numsan": {"top1": {"share": 0.5}, "calibration": 0.2, "macro_f1": None}}}
    assert score.missed(measured, {"open": {"top1": {"at_least": 0.5}, "calibration": {"at_most": 0.2}}}) == []
    lines = score.missed(measured, {"open": {"top1": {"at_least": 0.6}, "macro_f1": {"at_least": 0}}})
    assert lines == ["open, top 1: 0.500, wanted {'at_least': 0.6}", "open, macro F1: nothing was measured"]


def signals(loss=(1.0, 0.5, 0.4), rate=1e-3, gradients=((0.1, 0.1), (0.1, 0.1)), weight=0.5, update=1e-3, zeros=0.4,
            at_limit=None):
    steps = range(len(loss))
    return {"loss": list(loss), "step_size": [rate for _ in steps],
            "parameters": [{"shape": [4, 4], "gradient": list(one), "weight": [weight], "update": [update]}
                           for one in gradients],
            "activations": [{"zeros": [zeros], "at_limit": [at_limit]}]}


@pytest.mark.parametrize("rule, given, said", [
    ("AutoTrainer", {}, []),
    ("AutoTrainer", {"loss": (1.0, 0.5, None)}, ["exploding-gradient"]),
    ("AutoTrainer", {"gradients": ((8.0,), (0.1,))}, ["exploding-gradient"]),
    ("AutoTrainer", {"gradients": ((1e-5,), (0.1,))}, ["ND106"]),
    ("AutoTrainer", {"zeros": 1.0}, ["ND105"]),
    ("AutoTrainer", {"weight": 6.0}, ["large-weights"]),
    ("AutoTrainer", {"loss": (1.0, 0.5, 0.6)}, ["ND107"]),
    ("AutoTrainer", {"loss": (1.0, 1.0, 0.999)}, ["ND108"]),
    ("UMLAUT", {}, []),
    ("UMLAUT", {"rate": 0.1}, ["ND107"]),
    ("UMLAUT", {"rate": 1e-9}, ["ND108"]),
    ("UMLAUT", {"rate": None}, []),
    ("DeepDiagnosis", {}, []),
    ("DeepDiagnosis", {"zeros": 0.8, "update": 0.5}, ["ND105", "ND107"]),
    ("DeepDiagnosis", {"at_limit": 0.8}, ["ND109"]),
    ("DeepDiagnosis", {"gradients": ((1e-9,), (0.1,))}, ["ND106"]),
    ("DeepDiagnosis", {"loss": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), "update": 1e-7}, ["ND108"]),
    ("DeepDiagnosis", {"loss": (1.0, None), "weight": 9.0}, ["large-weights"]),
])
def test_rules_of_other_tools(rule, given, said):
    measured = json.loads(json.dumps(signals(**given)))
    assert rivals.RIVALS[rule](measured) == said
