"""The tables of docs/accuracy.md and RESULTS.md are what results.json says, and that is what runs left."""
import json
import subprocess
import sys

import pytest

import figures
import manifest
import running

pytestmark = pytest.mark.quick


def run_figures(*arguments):
    return subprocess.run([sys.executable, running.SUITE / "figures.py", *arguments],
                          capture_output=True, text=True, timeout=60)


@pytest.fixture
def tree(tmp_path):
    """A copy of the files with tables and of results.json: (folder, path of the copy, arguments)."""
    for file, _, _ in figures.BLOCKS:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text((running.REPO / file).read_text())
    results = tmp_path / "results.json"
    results.write_text(figures.RESULTS.read_text())
    return tmp_path, results, ("--root", tmp_path, "--results", results)


def test_tables_of_this_tree():
    done = run_figures()
    assert done.returncode == 0, done.stdout + done.stderr


def test_results_are_of_all_baselines_and_say_of_how_many_programs():
    stored, now = json.loads(figures.RESULTS.read_text()), manifest.load()
    grown = (stored["programs"], stored["controls"]) != (len(now["programs"]), len(now["controls"]))
    assert stored["programs"] <= len(now["programs"]) and stored["controls"] <= len(now["controls"])
    assert ("The suite has grown since" in (running.REPO / figures.ACCURACY).read_text()) == grown
    assert list(stored["tools"]) == ["numsan", *running.baselines()]
    assert figures.text_of(stored) == figures.RESULTS.read_text()


def test_a_changed_figure_is_noticed_in_each_table_then_written(tree):
    folder, results, arguments = tree
    stored = json.loads(results.read_text())
    stored["tools"]["loss_only"]["recall"][0] -= 20
    stored["categories"]["N1"]["right"] -= 3
    stored["categories"]["N1"]["answered"]["N9"] = 3
    stored["calibration"]["held_out"] += 0.5
    results.write_text(figures.text_of(stored))
    done = run_figures(*arguments)
    assert done.returncode == 1
    assert done.stdout.count("\n+| check of the loss |") == 2
    assert done.stdout.count("\n+| N1 |") == 2 and done.stdout.count("\n+| each family") == 1
    assert run_figures(*arguments, "--write").returncode == 0
    assert run_figures(*arguments).returncode == 0


def test_no_marker(tree):
    folder, _, arguments = tree
    (folder / figures.ACCURACY).write_text("nothing here\n")
    done = run_figures(*arguments)
    assert done.returncode == 2 and "<!-- table suite -->" in done.stdout


def a_run(entry, right):
    """A run of a tool that is right about an entry, or says nothing."""
    bug = right and "line" in entry
    finding = {"severity": "error", "op": "aten::log", "phase": None, "kind": None, "step": None,
               "line": entry.get("line"), "mechanism": None, "rank": None, "into": None,
               "ranking": [[entry.get("category"), 0.9], ["U", 0.05]]}
    return {"findings": [finding] if bug else [], "exit_status": 0, "bare_exit_status": 0,
            "same_output": True, "problems": [], "seconds": 1.0, "bare_seconds": None}


def test_collected_figures():
    now = manifest.load()
    entries = now["programs"] + now["controls"]
    names = ["numsan", *running.baselines()]
    stored = {name: {"versions": "3.11.2 (main) [GCC] 2.11.0", "device": "cpu", "runs": {
        entry["id"]: a_run(entry, name == "numsan") for entry in entries}} for name in names}
    results = figures.collected(now, stored)
    ours, other = results["tools"]["numsan"], results["tools"]["loss_only"]
    count = len(now["programs"])
    assert (results["python"], results["torch"]) == ("3.11.2", "2.11.0")
    assert (ours["recall"], ours["line_strict"], ours["phase"]) == ([count] * 2, [count] * 2, [0, count])
    assert (ours["gives"], other["gives"]) == (["category", "line", "op"], [])
    assert sum(one["right"] for one in results["categories"].values()) == count
    assert all(one["answered"] == ({name: one["programs"]} if one["programs"] else {})
               for name, one in results["categories"].items())
    rows = [line for line in figures.confusion_table(results) if line.startswith("| N1 |")]
    assert rows == [f"| N1 | {results['categories']['N1']['programs']} |" + "  |" * 8]
    kept = figures.collected(now, {"numsan": stored["numsan"]}, results)
    assert kept == results, "baselines without a file keep their figures"
    with pytest.raises(SystemExit, match="loss_only"):
        figures.collected(now, {"numsan": stored["numsan"]}, {**results, "torch": "2.10.0"})
    rows = [line for line in figures.short_table(results) if line.startswith("| ")]
    assert rows[2] == "| **numsan** | 1.00 | 0.00 | 1.00 | 1.00 | - | 1.00 |"
    assert rows[-1] == "| always the most common answer | 0.00 | 0.00 | - | - | - | - |"
    del stored["rules"]
    with pytest.raises(SystemExit, match="rules"):
        figures.collected(now, stored)
    stored["rules"] = {**stored["frames"], "runs": {}}
    with pytest.raises(SystemExit, match="not of the whole suite"):
        figures.collected(now, stored)
