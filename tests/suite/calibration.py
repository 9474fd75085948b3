#!/usr/bin/env python3
"""Whether confidences are right: of a stored result, as reported and cross-validated over families.

    calibration.py build/suite.json

A tool's confidences are a softmax of its scores times one scale. A reported confidence to the power
f, all of them divided by their sum, is what the scale times f would have reported; so no raw score
is needed. f is fitted by the log loss of "the first answer is right" (temperature scaling: Guo et
al., On Calibration of Modern Neural Networks, 2017), on all families of programs but one, and judged
on the one left out. What this does not undo: the scores themselves were made with the suite in view.
"""
import json
import math
import pathlib
import sys
from dataclasses import dataclass

import manifest as manifests
import scoring
from intervals import calibration_error
from markers import CATEGORIES

FACTORS = [round(0.2 + 0.02 * step, 2) for step in range(141)]  # 0.2 .. 3.0
CAUSES = len(CATEGORIES) + 1  # and "unknown"
CERTAIN = 1e-6  # no answer is surer than this, so that one mistake has a finite price


@dataclass
class Answer:
    """One program's first answer. `confidences`: best first, those of the ranking's listed part."""
    family: str
    confidences: list
    right: bool

    def confidence(self, factor):
        """What the first answer's confidence had been with the scale times `factor`.

        What the listed causes leave over is shared by the unlisted ones alike.
        """
        unlisted = CAUSES - len(self.confidences)
        rest = max(1.0 - sum(self.confidences), 0.0)
        powers = [value ** factor for value in self.confidences]
        if unlisted:
            powers.append(unlisted * (rest / unlisted) ** factor)
        return powers[0] / sum(powers)


def answers_of(manifest, scored):
    """The answers that the calibration error counts: a cause was named, with a confidence."""
    families = {entry["id"]: entry["family"] for entry in manifest["programs"]}
    return [Answer(families[outcome["id"]],
                   [confidence or 0.0 for _, confidence in outcome["first"]["ranking"]],
                   outcome["category_top1"])
            for outcome in scored["programs"] if outcome["confidence"] is not None]


def log_loss(answers, factor):
    """The mean surprise at which first answers were right and which wrong."""
    total = 0.0
    for answer in answers:
        sure = min(max(answer.confidence(factor), CERTAIN), 1 - CERTAIN)
        total -= math.log(sure if answer.right else 1 - sure)
    return total / len(answers)


def fitted(answers):
    """The factor of least log loss; of equals the one nearest to the scale as it is."""
    return min(FACTORS, key=lambda factor: (log_loss(answers, factor), abs(factor - 1)))


def error(answers, factor=1.0):
    return calibration_error([(answer.confidence(factor), answer.right) for answer in answers])


def cross_validated(answers):
    """All figures: errors as reported, fitted on everything, and fitted without the own family."""
    held_out, factors = [], {}
    for family in sorted({answer.family for answer in answers}):
        own = [answer for answer in answers if answer.family == family]
        rest = [answer for answer in answers if answer.family != family]
        if not rest:
            raise SystemExit("calibration: all answers are of one family, nothing can be left out")
        factors[family] = fitted(rest)
        held_out += [(answer.confidence(factors[family]), answer.right) for answer in own]
    everything = fitted(answers)
    return {"answers": len(answers), "right": sum(answer.right for answer in answers),
            "families": len(factors), "reported": error(answers),
            "fitted": error(answers, everything), "fitted_factor": everything,
            "held_out": calibration_error(held_out),
            "held_out_factors": [min(factors.values()), max(factors.values())],
            "log_loss": log_loss(answers, 1.0)}


def lines(figures):
    """The figures as text."""
    low, high = figures["held_out_factors"]
    yield f"answers {figures['answers']}, right {figures['right']}, families {figures['families']}"
    yield f"calibration error as reported          {figures['reported']:.3f}"
    yield (f"scale fitted on all families           {figures['fitted']:.3f}"
           f"   scale times {figures['fitted_factor']}")
    yield (f"scale fitted without the own family    {figures['held_out']:.3f}"
           f"   scale times {low}..{high}")


def main():
    if len(sys.argv) != 2:
        print("usage: calibration.py RESULT.json (of tests/suite/run --out)", file=sys.stderr)
        return 2
    manifest = manifests.load()
    runs = json.loads(pathlib.Path(sys.argv[1]).read_text())["runs"]
    print("\n".join(lines(cross_validated(answers_of(manifest, scoring.score(manifest, runs))))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
