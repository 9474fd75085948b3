"""scripts/diagnose/learn.py: a forest is written as what it is, and chosen by runs that it has not seen."""
import json
import pathlib
import sys

import pytest

numpy = pytest.importorskip("numpy", reason="numpy is not installed: scripts/setup --demo has it")
pytest.importorskip("sklearn", reason="scikit-learn is not installed: scripts/setup --demo has it")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "diagnose"))
import learn  # noqa: E402
import samples  # noqa: E402


def share_of(tree, row):
    """The leaf of a written tree, walked as host/diagnosis/learned/forest.h says."""
    at = 0
    while not isinstance(tree[at][0], list):
        feature, limit, above = tree[at]
        at = above if row[feature] > limit else at + 1
    return dict(tree[at])


def made_rows(count, seed):
    generator = numpy.random.RandomState(seed)
    rows = generator.standard_normal((count, 4)).astype(numpy.float32)
    rows[generator.rand(count) < 0.2, 3] = learn.UNKNOWN
    codes = numpy.where(rows[:, 0] > 0, "ND101", numpy.where(rows[:, 3] > 0, "ND102", "ND103"))
    return rows, codes


def test_written_trees_are_the_forest():
    rows, codes = made_rows(200, 0)
    forest = learn.forest(2, "sqrt").fit(rows, codes)
    trees = json.loads(json.dumps(learn.trees_of(forest, [0, 1, 2])))
    others, _ = made_rows(50, 1)
    for row, expected in zip(others, forest.predict_proba(others)):
        leaves = [share_of(tree, row) for tree in trees]
        shares = [sum(leaf.get(place, 0) for leaf in leaves) / len(leaves) for place in range(3)]
        assert shares == pytest.approx(list(expected), abs=1e-3)


def test_one_class_of_two_may_be_written():
    rows, codes = made_rows(200, 0)
    forest = learn.forest(1, 3).fit(rows, codes == "ND101")
    trees = learn.trees_of(forest, [1])
    for row, expected in zip(rows, forest.predict_proba(rows)[:, 1]):
        shares = [share_of(tree, row).get(0, 0) for tree in trees]
        assert sum(shares) / len(shares) == pytest.approx(expected, abs=1e-3)


def made_samples():
    """Three bases, ill ones told from healthy ones by `sum`, and healthy programs beside them."""
    rows, _ = made_rows(180, 2)
    kept = []
    for place, row in enumerate(rows):
        kind = [None, "rate-too-large", "rate-too-small"][place % 3]
        features = {"loss_places": 1, "loss_negative": 0, "loss_ratio": float(row[0]), "unknown": None,
                    "sum": float(row[1]) + (0 if kind is None else 3 if kind == "rate-too-large" else -3)}
        group = f"base{place % 4}" if kind or place % 4 else f"program{place}"
        kept.append(samples.Sample(f"{group}/{place}", group, kind, 0, features, ""))
    return kept


def test_groups_are_held_out_as_a_whole():
    kept = made_samples()
    data = learn.Data(kept)
    assert set(data.codes) == {"", "ND107", "ND108"} and data.judged.all()
    groups = {}
    for one, fold in zip(kept, data.folds):
        groups.setdefault(one.group, set()).add(fold)
    assert all(len(folds) == 1 for folds in groups.values())
    judged = learn.held_out(data, "random forest")
    assert (judged.first == data.codes)[data.ill].mean() > 0.8
    assert (judged.share >= judged.second_share).all()


@pytest.mark.nightly
def test_limit_is_chosen_without_the_runs_that_it_is_used_for():
    data = learn.Data(made_samples())
    _, before = learn.nested(data, "random forest")
    odd = (data.folds == 0) & ~data.ill
    data.rows[odd, data.keys.index("sum")] += 3  # healthy runs that look ill, all in one fold
    _, after = learn.nested(data, "random forest")
    assert before[odd].mean() < 0.3 < 0.7 < after[odd].mean()


def test_written_limit_is_the_judged_one():
    data = learn.Data(made_samples())
    model = json.loads(learn.written(learn.document(data)))
    judged = learn.held_out(data, learn.CHOSEN)
    assert model["least_ill"] == learn.least_ill(data, judged, numpy.ones(len(data.ill), bool))
    healthy = numpy.sort(judged.illness[~data.ill])[::-1]
    passed = int(learn.FALSE_ALARMS * len(healthy))
    assert healthy[passed] < model["least_ill"] <= healthy[passed] + 1 / learn.TREES


def test_model_of_the_tree_is_what_its_program_reads():
    model = json.loads(learn.MODEL.read_text())
    assert len(model["features"]) == len(model["usual"]) == len(set(model["features"]))
    assert len(model["ill"]) == len(model["which"]) == learn.TREES
    assert model["faults"] == sorted(model["faults"])
    assert learn.written(model) == learn.MODEL.read_text()
