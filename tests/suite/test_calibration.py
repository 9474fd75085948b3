"""The cross-validated calibration error, on answers whose right scale is known."""
import math

import pytest

import calibration
from calibration import Answer


def softmax(scores, scale):
    powers = [math.exp(scale * score) for score in scores]
    return [power / sum(powers) for power in powers]


def answers(scale, right_of, families=4, each=40):
    """Answers of one kind, two causes far ahead of the rest, `right_of` of a hundred right."""
    scores = [2.0, 1.0] + [-8.0] * (calibration.CAUSES - 2)
    listed = softmax(scores, scale)[:2]
    return [Answer(f"family{family}", listed, number * 100 < right_of * each)
            for family in range(families) for number in range(each)]


def test_a_power_of_confidences_is_another_scale_of_the_scores():
    scores = [2.0, 1.2, 0.5] + [0.0] * (calibration.CAUSES - 3)
    answer = Answer("any", softmax(scores, 1.7)[:3], True)
    for factor in (0.5, 1.0, 1.9):
        assert answer.confidence(factor) == pytest.approx(softmax(scores, 1.7 * factor)[0])


def test_a_ranking_that_lists_every_cause():
    whole = softmax([float(number) for number in range(calibration.CAUSES, 0, -1)], 0.4)
    assert Answer("any", whole, True).confidence(1.0) == pytest.approx(whole[0])


def test_the_right_scale_is_found_in_every_family():
    sure = answers(scale=2.0, right_of=75)  # says 0.88, is right 0.75: the scale ln 3 would say that
    figures = calibration.cross_validated(sure)
    assert figures["reported"] == pytest.approx(0.13, abs=0.01)
    assert figures["fitted_factor"] == pytest.approx(math.log(3) / 2.0, abs=0.02)
    assert figures["fitted"] < 0.01 and figures["held_out"] < 0.01
    assert (figures["answers"], figures["right"], figures["families"]) == (160, 120, 4)


def test_a_family_unlike_the_others_is_not_flattered_by_its_own_fit():
    odd = [Answer("odd", one.confidences, False) for one in answers(2.0, 75, families=1)]
    figures = calibration.cross_validated(answers(2.0, 100, families=1) + odd)
    assert figures["held_out"] > figures["fitted"] + 0.3
    low, high = figures["held_out_factors"]
    assert low == calibration.FACTORS[0] and high == calibration.FACTORS[-1]


def test_one_family_alone_cannot_be_left_out():
    with pytest.raises(SystemExit, match="one family"):
        calibration.cross_validated(answers(1.0, 50, families=1))
