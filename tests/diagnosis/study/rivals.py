"""The rules of other tools, read from the signals of a report, and a constant answer.

Thresholds are those of the tools' published code. Their answers are codes of numsan where the fault is the same, else
names of fault_kinds.py. What their signals were and a report lacks: accuracy on training and validation data
(AutoTrainer's slow convergence and oscillation are read from the loss instead, its test of convergence is left out;
UMLAUT's overfitting is), inputs and their range (UMLAUT, DeepDiagnosis), outputs of each layer (AutoTrainer's
activation test; DeepDiagnosis' numerical errors but those of the loss), single values of gradients and weights (root
mean squares stand in), layers by name (UMLAUT's missing softmax: of Keras, where the loss takes probabilities).
"""
import math


def finite(values):
    return [value for value in values if value is not None and math.isfinite(value)]


def last(values):
    known = finite(values)
    return known[-1] if known else None


def loss_is_lost(signals, limit=math.inf):
    """Whether a sampled loss is not finite (null in JSON, a text or no number), or beyond the limit."""
    return any(not isinstance(one, (int, float)) or not math.isfinite(one) or one >= limit for one in signals["loss"])


def matrices(signals):
    return [one for one in signals["parameters"] if len(one["shape"]) > 1]


def gradient_ends(signals):
    """The gradients of the first and of the last matrix, of each step that has both."""
    weights = matrices(signals)
    if len(weights) < 2:
        return []
    ends = zip(weights[0]["gradient"], weights[-1]["gradient"])
    return [(first, final) for first, final in ends if finite([first, final]) == [first, final] and final]


def autotrainer(signals):
    """Explosion, vanishing, dying ReLU, large weights, oscillation, slow convergence, in the tool's order."""
    said, ends = [], gradient_ends(signals)
    if loss_is_lost(signals, 1e3) or any(first / final > 70 for first, final in ends):
        said.append("exploding-gradient")
    if any(first / final < 1e-3 and first < 1e-4 for first, final in ends):
        said.append("ND106")
    if any(max(finite(one["zeros"]), default=0) >= 0.7 for one in signals["activations"]):
        said.append("ND105")
    if any(max(finite(one["weight"]), default=0) > 5 for one in matrices(signals)):
        said.append("large-weights")
    loss = finite(signals["loss"])
    rises = [later - earlier >= 0.03 * abs(earlier) for earlier, later in zip(loss, loss[1:])]
    if rises and sum(rises) >= 0.2 * len(rises):
        said.append("ND107")
    if loss and loss[0] - min(loss) < 0.01 * abs(loss[0]):
        said.append("ND108")
    return said


def umlaut(signals):
    """The rates that it calls too high and too low."""
    rate = last(signals["step_size"])
    if rate is None:
        return []
    return ["ND107"] if rate > 0.01 else ["ND108"] if rate < 1e-7 else []


def deepdiagnosis(signals):
    """Dead nodes, saturation, vanishing gradients, then its tree: weights, rate, loss."""
    said = []
    if any((last(one["zeros"]) or 0) >= 0.7 for one in signals["activations"]):
        said.append("ND105")
    if any((last(one["at_limit"]) or 0) > 0.5 for one in signals["activations"]):
        said.append("ND109")
    gradients = [value for one in matrices(signals) for value in finite(one["gradient"])]
    if gradients and min(gradients) < 1e-7:
        said.append("ND106")
    variances = [value ** 2 for one in matrices(signals) for value in finite(one["weight"])]
    loss = finite(signals["loss"])
    if said or loss_is_lost(signals) or len(loss) > 5 and min(loss[-5:]) >= loss[-6]:
        if variances and min(variances) < 1e-5:
            said.append("small-weights")
        if variances and max(variances) > 10:
            said.append("large-weights")
        updates = [value for one in matrices(signals) for value in finite(one["update"])]
        if updates and max(updates) > 1e-1:
            said.append("ND107")
        if updates and min(updates) < 1e-5:
            said.append("ND108")
    return said


RIVALS = {"AutoTrainer": autotrainer, "UMLAUT": umlaut, "DeepDiagnosis": deepdiagnosis}
