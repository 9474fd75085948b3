"""The statistics of the suite: intervals of shares, paired comparison, calibration, F1."""
import math
import random

NORMAL_95 = 1.959963984540054


def wilson(good, total):
    """The Wilson 95 % interval of a share; (0, 1) where nothing was counted."""
    if not total:
        return 0.0, 1.0
    share, square = good / total, NORMAL_95 ** 2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = NORMAL_95 / (1 + square / total) * math.sqrt(
        share * (1 - share) / total + square / (4 * total ** 2))
    return max(0.0, middle - half), min(1.0, middle + half)


def paired_bootstrap(pairs, rounds=10000, seed=1):
    """(difference of the means, its 95 % interval) of b - a over pairs (a, b), resampling the
    pairs."""
    if not pairs:
        return 0.0, (0.0, 0.0)
    differences = [float(b) - float(a) for a, b in pairs]
    dice, count = random.Random(seed), len(differences)
    means = sorted(sum(dice.choices(differences, k=count)) / count for _ in range(rounds))
    low, high = means[int(0.025 * rounds)], means[min(rounds - 1, int(0.975 * rounds))]
    return sum(differences) / count, (low, high)


def calibration_error(answers, bins=10):
    """The expected calibration error of (confidence, was it right) in bins of equal width."""
    groups = {}
    for confidence, right in answers:
        groups.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, right))
    gap = sum(abs(sum(confidence for confidence, _ in group) - sum(right for _, right in group))
              for group in groups.values())
    return gap / len(answers) if answers else 0.0


def macro_f1(answers):
    """The mean F1 over the classes that occur as truth, of (truth, answer); an answer of None is a
    miss."""
    scores = []
    for name in sorted({truth for truth, _ in answers}):
        hit = sum(truth == name == answer for truth, answer in answers)
        missed = sum(truth == name != answer for truth, answer in answers)
        wrong = sum(answer == name != truth for truth, answer in answers)
        scores.append(2 * hit / (2 * hit + missed + wrong))
    return sum(scores) / len(scores) if scores else 0.0
