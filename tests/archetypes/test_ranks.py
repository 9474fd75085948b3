"""Programs of two ranks over gloo: each rank is a process of its own, both are watched."""
import json
import pathlib
import subprocess

import pytest

import run_numsan
from cases import cases_of
from test_archetypes import RUN_CASES, differences, findings_of

CASES = {case.name: case for case in cases_of(pathlib.Path(__file__).resolve().parent / "ranks" / "programs.py")}


@pytest.fixture(scope="module")
def runs(warm, tmp_path_factory):
    """The folders of rank 0 and rank 1."""
    store, processes, folders = tmp_path_factory.mktemp("store"), [], []
    for rank in range(2):
        folders.append(tmp_path_factory.mktemp(f"rank{rank}"))
        command, environment = run_numsan.attached(
            [run_numsan.PYTHON, RUN_CASES, folders[rank], *(f"{case.file}:{case.name}" for case in CASES.values())],
            report=folders[rank] / "report-%p.json", env={"RANK": str(rank), "WORLD_SIZE": "2", "STORE": str(store)})
        processes.append(subprocess.Popen(command, env=environment, cwd=folders[rank], stdin=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True))
    for process in processes:
        _, stderr = process.communicate(timeout=300)
        assert process.returncode == 0, stderr[-4000:]
    return folders


def check(runs, name, rank):
    findings = findings_of(runs[rank], name)
    wrong = differences(CASES[name], findings)
    assert not wrong, f"(seen, expected): {wrong}\n{json.dumps(findings, indent=1)[:6000]}"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rank", [0, 1])
def test_program_is_what_it_says(name, rank, runs):
    result = json.loads((runs[rank] / "results.json").read_text())[name]
    assert result == {"status": 0, "finite": CASES[name].finite}, (runs[rank] / f"{name}.out").read_text()[-4000:]


def test_the_rank_that_was_first_names_the_line(runs):
    check(runs, "shard_without_labels", 1)


def test_the_other_rank_says_that_it_received_the_value(runs):
    findings = findings_of(runs[0], "shard_without_labels")
    assert [(one["op"], one["phase"], one["mechanism"]) for one in findings] == [("c10d::allreduce_", "comm", "DATA")]
    assert findings[0]["location"]["code"] == "loss.backward()"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_functional_collective_is_named(rank, runs):
    check(runs, "functional_sum_in_half", rank)


@pytest.mark.parametrize("rank", [0, 1])
def test_sharded_parameters_are_met_with_silence(rank, runs):
    assert findings_of(runs[rank], "sharded_parameters") == []
