"""Whether a seeded fault does harm: its figures against those of the healthy program, over several seeds."""
import itertools
import math
from typing import NamedTuple

EFFECT, PROBABILITY, LOST = 0.8, 0.05, 0.05  # Cohen's d (a large effect), one-sided, share of what training gains


class Harm(NamedTuple):
    effect: float
    probability: float
    lost: float

    @property
    def proven(self):
        return self.effect >= EFFECT and self.probability <= PROBABILITY and self.lost >= LOST


def mean(values):
    return sum(values) / len(values)


def variance(values):
    return sum((value - mean(values)) ** 2 for value in values) / (len(values) - 1) if len(values) > 1 else 0.0


def cohens_d(high, low):
    """The difference of the means in pooled standard deviations; infinite where nothing varies."""
    degrees = len(high) + len(low) - 2
    pooled = ((len(high) - 1) * variance(high) + (len(low) - 1) * variance(low)) / degrees
    difference = mean(high) - mean(low)
    return difference / math.sqrt(pooled) if pooled else math.copysign(math.inf, difference) if difference else 0.0


def mann_whitney(high, low):
    """The exact one-sided probability that a random split of all values is at least as far apart, ties counted half."""
    values = [*high, *low]

    def wins(chosen):
        others = [value for place, value in enumerate(values) if place not in chosen]
        return sum((other > values[place]) + 0.5 * (other == values[place]) for other in others for place in chosen)

    seen = wins(set(range(len(high), len(values))))
    splits = [wins(set(chosen)) for chosen in itertools.combinations(range(len(values)), len(low))]
    return sum(split >= seen for split in splits) / len(splits)


def of(healthy, faulty, untrained):
    """Figures such that more is better. One that is not finite counts as that of the model before training."""
    before = mean(untrained)
    faulty = [value if value is not None and math.isfinite(value) else before for value in faulty]
    gain = mean(healthy) - before
    return Harm(cohens_d(healthy, faulty), mann_whitney(healthy, faulty),
                (mean(healthy) - mean(faulty)) / gain if gain > 0 else 0.0)
