#!/usr/bin/env python3
"""Learns which runs are ill, and of what, from the open half of the study and from healthy programs.

    scripts/diagnose/learn.py --record           makes the runs that are missing first, in half an hour
    scripts/diagnose/learn.py                    learners beside each other, each judged on bases that it has not seen
    scripts/diagnose/learn.py --write            writes host/diagnosis/learned/model.json

Two forests: `ill` tells runs with a fault from healthy ones, `which` faults from each other. A run is said to be ill
from the share of votes on that one in 50 of held-out healthy runs exceed. Everything is judged with one base of the
study, and a share of the healthy programs, left out of what is learned; the least share of votes is chosen within what
is left.
"""
import argparse
import json
import pathlib
import sys

import numpy
import samples
import sklearn
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from fault_kinds import KINDS  # samples.py has its folder on the path

MODEL = samples.REPO / "host" / "diagnosis" / "learned" / "model.json"
TREES, FALSE_ALARMS = 100, 0.02
NEARLY_AS_LIKELY = 0.5  # kNearlyAsLikely of host/base/thresholds.def
UNKNOWN, LARGEST = -1e30, 1e30  # a feature that is not known is below every limit; float32 ends at 3e38


def forest(leaf, features):
    return RandomForestClassifier(TREES, min_samples_leaf=leaf, max_features=features, class_weight="balanced",
                                  random_state=0, n_jobs=2)


def boosted():
    return HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, min_samples_leaf=5, class_weight="balanced",
                                          random_state=0)


def logistic():
    return make_pipeline(SimpleImputer(missing_values=UNKNOWN, add_indicator=True), QuantileTransformer(n_quantiles=50),
                         LogisticRegression(max_iter=2000, class_weight="balanced"))


def extra(leaf):
    return ExtraTreesClassifier(TREES, min_samples_leaf=leaf, class_weight="balanced", random_state=0, n_jobs=2)


# (of whether a run is ill, of which fault it has)
LEARNERS = {"random forest": (lambda: forest(1, 3), lambda: forest(2, "sqrt")),
            "extra trees": (lambda: extra(3), lambda: extra(2)),
            "boosted trees": (boosted, boosted), "logistic regression": (logistic, logistic)}
CHOSEN = "random forest"


class Data:
    """All samples as arrays: rows of features, codes ("" of a healthy run, a kind of one without a code), folds."""

    def __init__(self, kept):
        self.keys = list(kept[0].features)
        rows = [[one.features[key] for key in self.keys] for one in kept]
        rows = numpy.array([[UNKNOWN if value is None else value for value in row] for row in rows], float)
        self.rows = rows.clip(-LARGEST, LARGEST).astype(numpy.float32)
        self.codes = numpy.array([(KINDS[one.kind].code or one.kind) if one.kind else "" for one in kept])
        self.ill = self.codes != ""
        self.named = numpy.array([code.startswith("ND") for code in self.codes])
        # Only of these does the loss say whether the training learns: loss_says_what_is_learned().
        self.judged = numpy.array([one.features["loss_places"] == 1 and not one.features["loss_negative"]
                                   and one.features["loss_ratio"] is not None for one in kept])
        self.seeds = numpy.array([one.seed for one in kept])
        self.ruled = numpy.array([one.ruled for one in kept])
        bases = sorted({one.group for one in kept if one.kind})
        others = sorted({one.group for one in kept} - set(bases), key=lambda name: (sum(map(ord, name)), name))
        fold_of = {name: place for place, name in enumerate(bases)}
        fold_of.update({name: place % len(bases) for place, name in enumerate(others)})
        self.folds = numpy.array([fold_of[one.group] for one in kept])


class Judged:
    """Held-out answers: how ill each run looks, its two likeliest faults, and the share of each."""

    def __init__(self, count):
        self.illness = numpy.zeros(count)
        self.first, self.second = numpy.empty(count, object), numpy.empty(count, object)
        self.share, self.second_share = numpy.zeros(count), numpy.zeros(count)


def learned(data, learner, chosen):
    """The two models of `learner`, from the runs that `chosen` marks."""
    ill, which = (make() for make in LEARNERS[learner])
    ill.fit(data.rows[chosen], data.ill[chosen])
    which.fit(data.rows[chosen & data.named], data.codes[chosen & data.named])
    return ill, which


def held_out(data, learner, within=None):
    """Each run of `within` judged by what was learned without its fold."""
    within = numpy.ones(len(data.ill), bool) if within is None else within
    judged = Judged(len(data.ill))
    for fold in sorted(set(data.folds[within])):
        out = within & (data.folds == fold)
        ill, which = learned(data, learner, within & ~out)
        judged.illness[out] = ill.predict_proba(data.rows[out])[:, 1]
        shares = which.predict_proba(data.rows[out])
        order = numpy.argsort(-shares, axis=1)
        judged.first[out] = which.classes_[order[:, 0]]
        judged.second[out] = which.classes_[order[:, 1]]
        judged.share[out], judged.second_share[out] = numpy.sort(shares, axis=1)[:, :-3:-1].T
    return judged


def least_ill(data, judged, within):
    """The least illness that is said, half a tree's vote above that of a healthy run: at most a share of FALSE_ALARMS
    of the healthy runs have more."""
    healthy = numpy.sort(judged.illness[within & ~data.ill & data.judged])[::-1]
    return round(float(healthy[int(FALSE_ALARMS * len(healthy))]) + 0.5 / TREES, 6)


def nested(data, learner):
    """(held-out answers, whether each is said), the least illness chosen without the fold that it is used for."""
    judged, said = held_out(data, learner), numpy.zeros(len(data.ill), bool)
    for fold in sorted(set(data.folds)):
        out = data.folds == fold
        least = least_ill(data, held_out(data, learner, ~out), ~out)
        said[out] = (judged.illness[out] >= least) & data.judged[out]
    return judged, said


def row(name, data, judged, said):
    """A line of the table: the model alone, and where no rule is met."""
    seeded, healthy = data.ill & (data.seeds == 0), ~data.ill
    right = judged.first == data.codes
    either = right | (judged.second == data.codes)
    ruled = data.ruled != ""
    found = ruled | said
    best = numpy.where(ruled, data.ruled, judged.first) == data.codes
    figures = [right[seeded], either[seeded], said[seeded], said[healthy], found[seeded], (found & best)[seeded]]
    cells = [f"{values.mean():.2f} ({values.sum()}/{len(values)})" for values in figures]
    return f"| {name} | {' | '.join(cells)} |"


def table(data):
    print("| learner | right, told that it is ill | one of two | found alone | false alarms | found, with rules "
          "| top 1, with rules |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in LEARNERS:
        print(row(name, data, *nested(data, name)), flush=True)


def calibration(data, judged, said):
    """(slope, offset) of the logit of how often an answer is right over that of its share of votes, of all that is
    said: the second one of a run, too."""
    said = said & (data.ruled == "")
    both = said & (judged.second_share >= NEARLY_AS_LIKELY * judged.share)
    shares = numpy.concatenate([(judged.share * judged.illness)[said], (judged.second_share * judged.illness)[both]])
    right = numpy.concatenate([(judged.first == data.codes)[said], (judged.second == data.codes)[both]])
    shares = shares.clip(1e-3, 1 - 1e-3)
    logits = numpy.log(shares / (1 - shares))
    fitted = LogisticRegression().fit(logits.reshape(-1, 1), right)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def trees_of(trained, classes):
    """A forest as the document that host/diagnosis/learned/forest.h reads."""
    def nodes(tree, node, out):
        left, right = tree.children_left[node], tree.children_right[node]
        if left < 0:
            votes = tree.value[node][0] / tree.value[node][0].sum()
            out.append([[classes.index(place), round(float(share), 4)]
                        for place, share in enumerate(votes) if share > 0 and place in classes])
            if not out[-1]:
                out[-1] = [[0, 0]]
            return
        here = len(out)
        out.append([int(tree.feature[node]), float(f"{tree.threshold[node]:.9g}"), 0])
        nodes(tree, left, out)
        out[here][2] = len(out)
        nodes(tree, right, out)

    documents = []
    for one in trained.estimators_:
        documents.append([])
        nodes(one.tree_, 0, documents[-1])
    return documents


def median(values):
    known = [value for value in values if value > UNKNOWN]
    return float(f"{numpy.median(known):.6g}") if known else None


def document(data):
    judged = held_out(data, CHOSEN)
    everything = numpy.ones(len(data.ill), bool)
    least = least_ill(data, judged, everything)
    slope, offset = calibration(data, judged, data.judged & (judged.illness >= least))
    ill, which = learned(data, CHOSEN, everything)
    usual = [median(column) for column in data.rows[~data.ill].T]
    return {"made_by": "scripts/diagnose/learn.py --write, scikit-learn " + sklearn.__version__,
            "runs": {"ill": int(data.ill.sum()), "healthy": int((~data.ill).sum())},
            "least_ill": least, "slope": round(slope, 4), "offset": round(offset, 4),
            "features": data.keys, "usual": usual, "faults": list(which.classes_),
            "ill": trees_of(ill, [1]), "which": trees_of(which, list(range(len(which.classes_))))}


def written(model):
    """JSON, a line for each tree and member."""
    def lines(value):
        if isinstance(value, list) and value and isinstance(value[0], list):
            return "[\n" + ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in value) + "]"
        return json.dumps(value)

    return "{\n" + ",\n".join(f"{json.dumps(key)}: {lines(value)}" for key, value in model.items()) + "}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=samples.study_runs.run_numsan.BUILD / "study",
                        help="where runs are kept")
    parser.add_argument("--record", action="store_true", help="make the runs that are missing")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--write", action="store_true", help="write the model")
    options = parser.parse_args()
    if options.record:
        samples.record(options.folder, options.jobs)
    data = Data(samples.samples(options.folder))
    print(f"{data.ill.sum()} runs with a fault, {(~data.ill).sum()} healthy ones")
    if options.write:
        MODEL.write_text(written(document(data)))
        print(f"{MODEL.name} has {MODEL.stat().st_size:,} bytes")
    else:
        table(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
