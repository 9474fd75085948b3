"""Baseline: a learner on the dynamics of a run, after DeepFD: neighbours, a tree and a forest.

Under the driver it only collects features. `dynamics_learner.py FOLDER` then reads all reports in
FOLDER that the driver wrote for this baseline, and fills in the findings of each program by a model
that was trained on the programs of the other families only. Healthy controls are a class of their
own, for which there is no finding.
"""
import json
import math
import pathlib
import sys

import numpy

from labels import read_labels
from training_trace import Trace
from rules import SYMPTOMS, symptoms_of

FIGURES = ("loss", "gradient_max", "weight_max", "zero_gradients", "gradient_ratio",
           "output_mean", "input_max")
HEALTHY = "none"


def aggregate(values):
    """Mean, deviation, skewness, median, variance, standard error, largest, smallest."""
    values = numpy.asarray(values, dtype=float)
    mean, deviation = values.mean(), values.std()
    skew = ((values - mean) ** 3).mean() / deviation ** 3 if deviation > 0 else 0.0
    return [mean, deviation, skew, numpy.median(values), values.var(),
            deviation / math.sqrt(len(values)), values.max(), values.min()]


def features(records):
    """One vector per run; what is not finite is 0, and magnitudes are logarithms."""
    if not records:
        return [0.0] * 8 * (len(FIGURES) + len(SYMPTOMS))
    columns = [[math.log10(1 + abs(r[name])) if math.isfinite(r[name]) else 0.0 for r in records]
               for name in FIGURES]
    shown = [symptoms_of(record) for record in records]
    columns += [[float(name in names) for names in shown] for name in SYMPTOMS]
    return [float(v) for column in columns for v in aggregate(column)]


def attach(run):
    """Puts the features of the run into the report."""
    trace = Trace(run)

    def finish():
        run.extra["features"] = features(trace.records)

    return finish


def rank(train, answers, sample):
    """Classes and shares, best first: the mean of the probabilities of the three classifiers."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.tree import DecisionTreeClassifier
    scale = MinMaxScaler().fit(train)
    models = (KNeighborsClassifier(min(5, len(train))),
              DecisionTreeClassifier(max_depth=5, random_state=0),
              RandomForestClassifier(32, max_depth=10, max_features=0.4, random_state=0))
    shares = 0
    for model in models:
        model.fit(scale.transform(train), answers)
        shares = shares + model.predict_proba(scale.transform([sample]))[0] / len(models)
    order = numpy.argsort(-shares, kind="stable")
    return [(str(model.classes_[i]), round(float(shares[i]), 3)) for i in order]


def main():
    if len(sys.argv) != 2:
        print("usage: dynamics_learner.py FOLDER", file=sys.stderr)
        return 2
    runs = []
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        report = json.loads(path.read_text())
        if report.get("baseline") == "dynamics_learner" and "features" in report:
            label = read_labels(report["program"])
            runs.append((path, report, label.get("category") or HEALTHY,
                         label.get("family") or pathlib.Path(report["program"]).stem))
    for path, report, _, family in runs:
        others = [(r["features"], answer) for _, r, answer, group in runs if group != family]
        ranked = rank([f for f, _ in others], [a for _, a in others], report["features"])
        guesses = [{"id": name, "confidence": share} for name, share in ranked if name != HEALTHY]
        report["findings"] = [] if ranked[0][0] == HEALTHY else [{
            "severity": "error", "op": "training", "phase": None, "kind": None, "step": None,
            "location": None, "category": guesses[0], "alternatives": guesses[1:3]}]
        path.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
