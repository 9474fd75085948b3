"""Baseline: monitors of training dynamics, with published thresholds.

The thresholds are those of AUTOTRAINER, DeepLocalize, DeepDiagnosis and UMLAUT. Each symptom votes
for a category; a non-finite symptom is an error, any other alone a warning.
"""
from collections import Counter

from training_trace import Trace

# symptom: (category, does the record show it); the order breaks ties, weights and data first
SYMPTOMS = {
    "not_finite_input": ("N1", lambda r: r["bad_input"]),
    "not_finite_weight": ("N5", lambda r: r["bad_weight"]),
    "not_finite_gradient": ("N5", lambda r: r["bad_gradient"]),
    "not_finite_loss": ("N4", lambda r: r["bad_loss"]),
    "poor_weights": ("N6", lambda r: any(not 1e-5 <= v <= 10 for v in r["weight_variance"])),
    "large_weights": ("N6", lambda r: r["weight_max"] > 5),
    "input_not_normalised": ("N1", lambda r: r["input_max"] > 1),
    "large_outputs": ("N1", lambda r: r["output_mean"] >= 10),
    "learning_rate": ("N5", lambda r: r["rate"] is not None and not 1e-5 <= r["rate"] <= 1e-1),
    "large_loss": ("N5", lambda r: r["loss"] >= 1e3),
    "exploding_gradient": ("N5", lambda r: r["gradient_ratio"] > 70),
    "vanishing_gradient": ("N7", lambda r: any(v < 1e-7 for v in r["kernel_gradient_means"])
                           or r["gradient_ratio"] < 1e-3 and r["first_gradient"] < 1e-4),
    "dying_units": ("N7", lambda r: r["zero_gradients"] >= 0.7),
    "saturated_units": ("N7", lambda r: r["saturated"] > 0.5),
}
LOSS_CHECKS = 5


def symptoms_of(record):
    """Names of the symptoms that one record shows."""
    return [name for name, (_, shows) in SYMPTOMS.items() if shows(record)]


def attach(run):
    """Judges the whole run at its end, as these monitors do after training."""
    trace = Trace(run)

    def finish():
        seen = {}
        for record in trace.records:
            for name in symptoms_of(record):
                seen.setdefault(name, record)
        losses = [record["loss"] for record in trace.records]
        if len(losses) > LOSS_CHECKS and min(losses[1:]) >= losses[0]:
            seen.setdefault("loss_never_falls", trace.records[LOSS_CHECKS])
        if not seen:
            return
        fatal = [name for name in seen if name.startswith("not_finite")]
        first = min((seen[name] for name in fatal or seen), key=lambda record: record["step"])
        votes = Counter(SYMPTOMS[name][0] for name in SYMPTOMS if name in seen)
        ranked = [(name, round(n / votes.total(), 3)) for name, n in votes.most_common()]
        run.step = first["step"]
        run.find("training", None, line=first["line"], categories=ranked,
                 severity="error" if fatal else "warning", symptoms=list(seen))

    return finish
