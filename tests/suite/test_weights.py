"""Learned weights against made-up results: what separates is found, families are not split, and nothing is made up."""
import json
import subprocess
import sys

import numpy
import pytest

import manifest
import weights

PROGRAMS = manifest.build(manifest.SUITE, "suite")[0]["programs"]


def stored(tmp_path, facts_of):
    """Results in which each program's finding weighed what `facts_of(entry)` gives."""
    runs = {entry["id"]: {"findings": [{"severity": "error", "line": None, "op": None, "weighed": facts_of(entry)}]}
            for entry in PROGRAMS}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"runs": runs}))
    return path


def fact(name, category, weight):
    return {"fact": name, "category": category, "weight": weight}


def test_what_separates_is_learned_and_holds_for_other_families(tmp_path):
    categories = sorted({entry["category"] for entry in PROGRAMS})
    sound = {category: [fact(f"Right{category}", category, 0.1)] for category in categories}
    programs = weights.Programs([stored(tmp_path, lambda entry: sound[entry["category"]])])
    rows = numpy.arange(len(programs.labels))
    found = weights.held_out(programs, weights.Fitted, rows, 5, (1.0,))
    shared = [category for category in categories
              if len({entry["family"] for entry in PROGRAMS if entry["category"] == category}) > 1]
    judged = numpy.array([row for row in rows if weights.CATEGORIES[programs.labels[row]] in shared])
    assert (found[judged].argmax(axis=1) == programs.labels[judged]).all()


def test_what_says_nothing_is_not_learned(tmp_path):
    programs = weights.Programs([stored(tmp_path, lambda entry: [fact("Always", "N2", 0.5)])])
    rows = numpy.arange(len(programs.labels))
    right = weights.held_out(programs, weights.Logistic, rows, 5, (0.3,)).argmax(axis=1) == programs.labels
    commonest = max(numpy.bincount(programs.labels)) / len(programs.labels)
    assert right.mean() <= commonest


def test_confidences_are_those_of_the_ranking(tmp_path):
    programs = weights.Programs([stored(tmp_path, lambda entry: [fact("One", "N4", 2.0)])])
    first = weights.AsSet(programs, None).predict(programs.facts)[0]
    unknown, scale = weights.threshold("kUnknownTotal"), weights.threshold("kConfidenceScale")
    powers = [numpy.exp(scale * total) for total in (unknown, 2.0, *[0.0] * 8)]
    assert first[weights.CATEGORIES.index("N4")] == pytest.approx(powers[1] / sum(powers))


def test_results_without_what_was_weighed_are_refused(tmp_path):
    path = stored(tmp_path, lambda entry: [])
    done = subprocess.run([sys.executable, weights.__file__, path], capture_output=True, text=True)
    assert done.returncode == 1 and "run the suite again" in done.stderr, done.stderr
