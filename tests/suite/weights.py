#!/usr/bin/env python3
"""Whether weights that are learned rank root causes better than those of host/cause/evidence.def.

    weights.py RUN.json [RUN.json ...]

Each RUN.json is what `run --out` stored, of either set; of threads only open families are taken. What a report weighed
(`weighed`) is what is learned from. Folds are of whole families, and what a learner may choose (how far it leaves the
weights as they are, how much it shrinks) is chosen within the other folds: nested cross-validation. Printed is a table:
shares in sample and of held families, for each set of programs and each way to weigh.
"""
import argparse
import json
import re
import sys

import numpy
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import BernoulliNB
from sklearn.tree import DecisionTreeClassifier

import manifest as manifests
import scoring
from intervals import calibration_error
from markers import CATEGORIES

THRESHOLDS = manifests.SUITE.parents[1] / "host/base/thresholds.def"
TINY = 1e-9


def threshold(name):
    return float(re.search(rf"\({name}, double, ([0-9.e+-]+),", THRESHOLDS.read_text())[1])


class Programs:
    """The bug programs of results: what was weighed in each, and which categories are right."""

    def __init__(self, runs):
        self.sets, self.families, self.labels, self.right, self.weighed = [], [], [], [], []
        for path in runs:
            stored = json.loads(open(path).read())["runs"]
            for name in manifests.SETS:
                for entry in manifests.build(manifests.SUITE, name)[0]["programs"]:
                    if entry["id"] in stored and not entry.get("frozen"):
                        self.add(name, entry, scoring.first_finding(entry, stored[entry["id"]]["findings"]))
        self.sets, self.families = numpy.array(self.sets), numpy.array(self.families)
        self.labels = numpy.array(self.labels)
        self.names = sorted({(fact["fact"], fact["category"], fact["weight"])
                             for facts in self.weighed for fact in facts})
        self.prior = numpy.array([weight for _, _, weight in self.names])
        at = {name: index for index, (name, _, _) in enumerate(self.names)}
        self.facts = numpy.zeros((len(self.weighed), len(self.names)))
        for row, facts in enumerate(self.weighed):
            self.facts[row, [at[fact["fact"]] for fact in facts]] = 1
        self.of_category = numpy.array([[category == one for one in CATEGORIES]
                                        for _, category, _ in self.names], float)

    def add(self, name, entry, finding):
        if finding is None:
            return
        self.sets.append(name)
        self.families.append(f"{name}/{entry['family']}")
        self.labels.append(CATEGORIES.index(entry["category"]))
        self.right.append({entry["category"], *entry["category_alt"]})
        self.weighed.append(finding["weighed"])


def confidences(facts, weights, of_category, scale):
    """As host/cause/ranking.cpp: a softmax of totals, beside that of an unknown cause. One column a category."""
    totals = numpy.hstack([numpy.full((len(facts), 1), threshold("kUnknownTotal")), facts * weights @ of_category])
    powers = numpy.exp(scale * (totals - totals.max(axis=1, keepdims=True)))
    return (powers / powers.sum(axis=1, keepdims=True))[:, 1:]


class AsSet:
    """The weights of the table."""
    choices = (None,)

    def __init__(self, programs, _):
        self.programs, self.weights = programs, programs.prior
        self.scale = threshold("kConfidenceScale")

    def fit(self, facts, labels):
        return self

    def predict(self, facts):
        return confidences(facts, self.weights, self.programs.of_category, self.scale)


class Fitted(AsSet):
    """Those of the table, moved by maximum likelihood and held to where they were by a Gaussian prior."""
    choices = (1.0, 4.0, 16.0)

    def __init__(self, programs, hold):
        super().__init__(programs, hold)
        self.hold = hold

    def fit(self, facts, labels):
        wanted = numpy.eye(len(CATEGORIES))[labels]
        of_category, prior = self.programs.of_category, self.programs.prior

        def loss(weights):
            found = confidences(facts, weights, of_category, self.scale)
            slope = self.scale * ((facts.T @ (found - wanted)) * of_category).sum(axis=1)
            moved = weights - prior
            return (-numpy.log((found * wanted).sum(axis=1) + TINY).sum() + self.hold * (moved ** 2).sum(),
                    slope + 2 * self.hold * moved)

        self.weights = minimize(loss, prior, jac=True, method="L-BFGS-B").x
        return self


class Learner:
    """A classifier of scikit-learn over the facts."""

    def __init__(self, programs, choice):
        self.model = self.make(choice)

    def fit(self, facts, labels):
        self.model.fit(facts, labels)
        return self

    def predict(self, facts):
        found = numpy.zeros((len(facts), len(CATEGORIES)))
        found[:, self.model.classes_] = self.model.predict_proba(facts)
        return found


class Logistic(Learner):
    choices = (0.1, 0.3, 1.0)

    def make(self, choice):
        return LogisticRegression(C=choice, max_iter=3000)


class NaiveBayes(Learner):
    choices = (0.1, 0.5, 1.0)

    def make(self, choice):
        return BernoulliNB(alpha=choice)


class Tree(Learner):
    choices = (3, 5, 8)

    def make(self, choice):
        return DecisionTreeClassifier(max_depth=choice, min_samples_leaf=3, random_state=0)


WAYS = {"weights of the table": AsSet, "fitted from those": Fitted, "multinomial logistic": Logistic,
        "naive Bayes": NaiveBayes, "tree": Tree}


def log_loss(found, labels):
    return -numpy.log(found[numpy.arange(len(labels)), labels] + TINY).mean()


def held_out(programs, way, rows, folds, choices):
    """Confidences for `rows`, each by what was learned from the families of the other folds."""
    found = numpy.zeros((len(rows), len(CATEGORIES)))
    families = programs.families[rows]
    for learn, judge in GroupKFold(min(folds, len(set(families)))).split(rows, groups=families):
        known, choice = rows[learn], choices[0]
        if len(choices) > 1:
            choice = min(choices, key=lambda one: log_loss(held_out(programs, way, known, 5, (one,)),
                                                           programs.labels[known]))
        learned = way(programs, choice).fit(programs.facts[known], programs.labels[known])
        found[judge] = learned.predict(programs.facts[rows[judge]])
    return found


def figures(programs, found, rows):
    """top 1, lenient, top 2, calibration error and log loss of some programs."""
    first = found[rows].argmax(axis=1)
    labels = programs.labels[rows]
    right = first == labels
    lenient = [CATEGORIES[guess] in programs.right[row] for guess, row in zip(first, rows)]
    second = [label in numpy.argsort(-found[row])[:2] for label, row in zip(labels, rows)]
    error = calibration_error(list(zip(found[rows].max(axis=1), right)))
    return right.mean(), numpy.mean(lenient), numpy.mean(second), error, log_loss(found[rows], labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="results of `run --out`")
    programs = Programs(parser.parse_args().runs)
    if not programs.sets.size or not any(programs.weighed):
        sys.exit("weights: the results hold no finding that says what was weighed: run the suite again")
    everything = numpy.arange(len(programs.labels))
    print("| programs | weights | in sample | held out | lenient | top 2 | calibration error | log loss |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, way in WAYS.items():
        learned = way(programs, way.choices[len(way.choices) // 2]).fit(programs.facts, programs.labels)
        inside = learned.predict(programs.facts)
        outside = held_out(programs, way, everything, 10, way.choices)
        for one in sorted(set(programs.sets)):
            rows = numpy.flatnonzero(programs.sets == one)
            shown = " | ".join(f"{figure:.2f}" for figure in figures(programs, outside, rows))
            print(f"| {one}, {len(rows)} | {name} | {figures(programs, inside, rows)[0]:.2f} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
