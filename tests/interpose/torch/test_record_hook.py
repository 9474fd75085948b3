"""Where another library holds the dispatch key, record functions show the same operators: same findings, same bits."""
import pathlib

import pytest

import run_numsan

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parents[1] / "programs"
BUGS = ["log_of_negative", "distance_of_twins", "hand_written_update", "learning_rate", "function_backward",
        "half_overflow"]
LINE = "operators are seen through record functions"
pytestmark = pytest.mark.xdist_group("no_key")  # one process has torch without the key


def essence(done):
    """What must not depend on the hook."""
    assert done.report is not None, done.describe()
    keys = ("code", "fingerprint", "mechanism", "kind", "severity", "op", "phase", "step", "location", "module",
            "category", "escape", "outputs", "forward")
    return [{key: finding[key] for key in keys} | {"escape": finding["escape"]["into"]} for finding in done.findings]


def spots(done):
    return [spot for spot in done.report["coverage"]["blind_spots"] if "record_function" in spot]


@pytest.mark.parametrize("bug", BUGS)
def test_findings_are_the_same(bug, no_key, tmp_path):
    program = PROGRAMS / bug / "victim.py"
    for name in ("plain", "usual", "record"):
        (tmp_path / name).mkdir()
    plain = run_numsan.run_forked(program, cwd=tmp_path / "plain")
    usual = run_numsan.run_watched_fork(program, cwd=tmp_path / "usual")
    record = run_numsan.run_watched_fork(program, env=no_key, cwd=tmp_path / "record")
    assert not spots(usual) and len(spots(record)) == 1, record.describe()
    run_numsan.validate(record.report)
    assert (record.returncode, record.stdout) == (plain.returncode, plain.stdout), record.describe()
    assert essence(record) == essence(usual) != [], record.describe()


@pytest.mark.parametrize("bug", ["log_of_negative", "distance_of_twins", "half_overflow"])
def test_twin_is_met_with_silence(bug, no_key, tmp_path):
    done = run_numsan.run_watched_fork(PROGRAMS / bug / "twin.py", env=no_key, cwd=tmp_path, clean=True)
    assert done.report is not None and done.report["verdict"] == "clean", done.describe()
    assert done.stderr == "" and len(spots(done)) == 1, done.describe()


def test_events_are_the_same(no_key, tmp_path):
    for name in ("plain", "usual", "record"):
        (tmp_path / name).mkdir()
    plain = run_numsan.run_forked(HERE / "every_kind.py", cwd=tmp_path / "plain")
    usual = run_numsan.run(HERE / "every_kind.py", cwd=tmp_path / "usual")
    record = run_numsan.run(HERE / "every_kind.py", env=no_key, cwd=tmp_path / "record")
    assert plain.returncode == 0, plain.describe()
    assert usual.stdout == record.stdout == plain.stdout, record.describe()
    assert len(spots(record)) == 1, record.describe()
    counts = [{key: done.report["coverage"][key] for key in ("ops", "scanned", "bytes", "skipped")}
              for done in (usual, record)]
    # The profiler's own, around the one Optimizer.step: no record function observes them.
    counts[0]["ops"] -= 2
    counts[0]["skipped"]["without output"] -= 2
    assert counts[0] == counts[1] and counts[0]["scanned"] > 100


def small(folder):
    """A program that does not start torch's compiler, as an optimizer does."""
    program = folder / "small.py"
    program.write_text("import torch\ntorch.ones(2).sum().item()\n")
    return program


@pytest.mark.parametrize("verbosity, said", [(1, False), (2, True)])
def test_says_so_only_when_asked(verbosity, said, no_key, tmp_path):
    done = run_numsan.run(small(tmp_path), env=no_key, options={"verbosity": verbosity}, cwd=tmp_path)
    assert (LINE in done.stderr) == said, done.describe()


@pytest.mark.parametrize("hook, name", [("dispatch", "fallback"), ("record", "record_function")])
def test_the_highest_verbosity_tells_how_it_is_attached(hook, name, no_key, tmp_path):
    done = run_numsan.run(small(tmp_path), env=no_key if hook == "record" else {}, options={"verbosity": 3},
                          cwd=tmp_path)
    lines = [line for line in done.stderr.splitlines() if line.startswith("numsan: debug: ")]
    assert len(lines) == 2 and f"; operators by {name}; stacks by python" in lines[0], done.describe()


@pytest.mark.parametrize("hook", ["dispatch", "record"])
def test_what_cannot_be_looked_at_is_counted(hook, no_key, tmp_path):
    done = run_numsan.run_watched_fork(HERE / "opaque.py", env=no_key if hook == "record" else None, cwd=tmp_path,
                                       clean=True)
    assert done.stdout == "made\n" and done.report is not None, done.describe()
    assert bool(spots(done)) == (hook == "record"), done.describe()
    coverage = done.report["coverage"]
    assert coverage["scanned"] + sum(coverage["skipped"].values()) == coverage["ops"], coverage
    seen = ("integer", "allocation", "without output")
    skipped = {key: count for key, count in coverage["skipped"].items() if key not in seen}
    # One sparse and one nested tensor are made by operators, too. Of a wrapper's calls the ops inside are seen.
    assert skipped == {"sparse": 4, "meta": 6, "nested": 3}, done.describe()


@pytest.mark.parametrize("hook", ["dispatch", "record"])
def test_ops_inside_the_answer_of_a_subclass_are_seen(hook, no_key, tmp_path):
    program = HERE / "answering_subclass.py"
    plain = run_numsan.run_forked(program, cwd=tmp_path)
    done = run_numsan.run_watched_fork(program, env=no_key if hook == "record" else None, cwd=tmp_path)
    assert done.stdout == plain.stdout == "loss nan\n", done.describe()
    assert [(found["op"], found["severity"], found["mechanism"]) for found in done.report["findings"]] == [
        ("aten::log", "error", "DOM")], done.describe()
    assert done.report["findings"][0]["outputs"][0]["nan"] == 1
    assert "wrapper" not in done.report["coverage"]["skipped"], done.describe()
