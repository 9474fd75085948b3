"""The parts of scripts/gpu_acceptance that run programs, on the test device; and the benches, whose times mean nothing
here, on it and on the CPU."""
import argparse
import importlib
import json
import shutil
import subprocess
import sys

import pytest

import cuda_programs
import device_environment
import run_numsan

TESTS = run_numsan.REPO / "tests"


@pytest.fixture(scope="module")
def device(warm):
    """Environment of programs that use the test device, which is compiled here and in no program's time limit."""
    if not (run_numsan.BUILD / "fakes/libcuda.so.1").exists():
        if shutil.which("nvcc") is None:
            pytest.skip("no fake CUDA driver in this build, as there is no nvcc")
        pytest.fail("the fake CUDA driver is missing: build first (scripts/build)", pytrace=False)
    environment = run_numsan.plain_environment({
        **device_environment.of_test_device(), "NUMSAN_CACHE": str(run_numsan.CACHE),
        "NUMSAN_PYTHON": run_numsan.PYTHON})
    done = subprocess.run([run_numsan.PYTHON, "-c", "import fakegpu"], env=environment, capture_output=True, text=True,
                          timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return environment


def run(environment, *argv, status=0):
    done = subprocess.run([run_numsan.PYTHON, *map(str, argv)], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=400)
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def test_questions_are_answered(device, tmp_path):
    run(device, TESTS / "gpu/attach.py", "--device", "test", "--only", "same,finds,graph", "--out", tmp_path / "out",
        "--reports", tmp_path / "reports")
    answers = json.loads((tmp_path / "out").read_text())
    assert {name: one["answer"] for name, one in answers.items()} == {"same": "yes", "finds": "yes", "graph": None}
    assert "NS101 aten::log" in answers["finds"]["seen"] and "only CUDA" in answers["graph"]["seen"]
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == ["finds-bug.json", "same-train.json"]


@pytest.mark.nightly
def test_another_answer_than_wanted_is_a_failure(device, tmp_path):
    """With the scan off there is a report and nothing in it."""
    run(device, TESTS / "gpu/attach.py", "--device", "test", "--only", "attaches,finds", "--options", "tier=off",
        "--out", tmp_path / "out", status=1)
    answers = json.loads((tmp_path / "out").read_text())
    assert {one["answer"] for one in answers.values()} == {"no"}


@pytest.mark.nightly
def test_verdicts_are_compared(device, tmp_path):
    run(device, TESTS / "gpu/suite_verdicts.py", "--device", "test", "--only", "p0[12]*", "--jobs", 2, "--out",
        tmp_path / "out", "--reports", tmp_path / "reports")
    result = json.loads((tmp_path / "out").read_text())
    assert (result["programs"], result["same"], result["different"]) == (2, 2, {})
    assert result["coverage"]["scanned"] > 0 and len(list((tmp_path / "reports").iterdir())) == 2


def test_a_verdict_that_differs_is_told(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS / "gpu"))
    monkeypatch.syspath_prepend(str(TESTS / "device"))
    verdicts = importlib.import_module("suite_verdicts")
    finding = {"op": "aten::log", "location": {"line": 3}, "severity": "error", "mechanism": "DOM", "phase": "forward",
               "step": 2}
    for folder, line in (("cpu", 3), ("gpu", 4)):
        (tmp_path / folder).mkdir()
        for name in ("same", "other"):
            moved = {**finding, "location": {"line": line if name == "other" else 3}}
            (tmp_path / folder / f"{name}.json").write_text(json.dumps({"findings": [moved]}))
            (tmp_path / folder / f"{name}.out").write_text("printed")
    cpu, there = ({name: (0, tmp_path / folder) for name in ("same", "other", "silent")} for folder in ("cpu", "gpu"))
    assert list(verdicts.compared(cpu, there)) == ["other"]
    there["same"] = (1, tmp_path / "gpu")
    different = verdicts.compared(cpu, there)
    assert list(different) == ["same", "other"] and different["same"]["device"]["printed"] == "printed"


def test_scans_are_measured(device, tmp_path):
    run(device, TESTS / "bench/cuda_scan.py", "--device", "fakegpu", "--smoke", "--out", tmp_path / "out")
    result = json.loads((tmp_path / "out").read_text())
    assert {"copy", "scan", "isfinite"} <= set(result["rates"][0]["subjects"])
    assert result["counters"]["skipped"] == 0 and result["wrong"] == []
    bad, gaps = (next(row for row in result["rates"] if row[key] == value)
                 for key, value in (("values", "nan"), ("layout", "rows")))
    assert bad["hits"] == bad["scanned"] > 0 and gaps["type"] == "complex128" and gaps["hits"] == 0
    assert {row["launches_a_batch"] for row in result["rates"]} == {1}
    assert [row["what"] for row in result["host"]] == ["immediate", "deferred", "immediate, 8 outputs"]
    deferred = result["counters"]
    assert deferred["launches"] < deferred["scanned"], "small outputs share launches"


@pytest.mark.nightly
def test_steps_are_measured(device, tmp_path):
    run(device, TESTS / "bench/cuda_steps.py", "--device", "cpu", "--works", "gpt2-tiny", "--tiers", "full", "--also",
        "quiet=tier=sentinel", "--turns", 2, "--seconds", 0.02, "--out", tmp_path / "out")
    result = json.loads((tmp_path / "out").read_text())
    assert result["failed"] == {}
    configurations = result["works"][0]["configurations"]
    assert list(configurations) == ["bare", "full", "quiet", "anomaly", "hooks"]
    assert configurations["full"]["coverage"]["bytes"] > configurations["quiet"]["coverage"]["bytes"] > 0
    assert configurations["bare"]["of_bare"]["median"] == 1 and configurations["hooks"]["seconds"]["turns"] == 2


@pytest.mark.nightly
def test_a_work_that_fails_is_told(device, tmp_path):
    """There are no CUDA graphs here."""
    done = run(device, TESTS / "bench/cuda_steps.py", "--device", "cpu", "--works", "graph-3", "--turns", 1, "--out",
               tmp_path / "out", status=1)
    assert "graph-3: failed" in done.stderr and json.loads((tmp_path / "out").read_text())["works"] == []


def test_turns_are_summed_up(monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS / "bench"))
    turns = importlib.import_module("turns")
    assert turns.spread([4.0, 1.0, 3.0, 2.0]) == {"median": 2.5, "low": 2.0, "high": 3.0, "turns": 4}
    assert turns.spread([5.0]) == {"median": 5.0, "low": 5.0, "high": 5.0, "turns": 1}
    assert turns.ratios([2.0, 3.0], [1.0, 2.0])["median"] == 1.75
    worker = turns.Worker([sys.executable, "-c", "import sys; print('no'); sys.exit('gone')"], turns.environment(None),
                          stderr=subprocess.PIPE)
    with pytest.raises(turns.DidNotStart, match="gone"):
        worker.await_ready()


def test_fewer_processes_where_memory_is_short(monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS / "bench"))
    steps, turns = importlib.import_module("cuda_steps"), importlib.import_module("turns")
    tried = []

    def measured(work, chosen, size, options):
        tried.append(size)
        if size > room:
            raise turns.DidNotStart("torch.OutOfMemoryError: CUDA out of memory")
        return size
    monkeypatch.setattr(steps, "measured_in_groups", measured)
    options = argparse.Namespace(together=6, tiers=["full", "boundary", "sentinel"], also=[])
    room = 3
    assert steps.measure("gpt2-tiny", options) == 3 and tried == [6, 3]
    room = 1
    with pytest.raises(turns.DidNotStart):
        steps.measure("gpt2-tiny", options)
    assert tried == [6, 3, 6, 3, 2]
    chosen = steps.configurations(options.tiers, ["quiet=tier=off"])
    groups = list(steps.in_groups(chosen, 3))
    assert [list(group) for group in groups] == [["bare", "full", "boundary"], ["bare", "sentinel", "quiet"],
                                                 ["bare", "anomaly", "hooks"]]


def test_programs_that_nvcc_built_are_judged(build, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS / "programs_cuda"))
    cases = importlib.import_module("cuda_cases")
    cuda_programs.need_programs(cases.HEALTHY)
    count = len(cases.HEALTHY) + len(cases.CASES)
    script = [sys.executable, TESTS / "gpu/nvcc_programs.py", "--device", "test", "--jobs", "2", "--out",
              tmp_path / "out"]
    done = subprocess.run([*script, "--reports", tmp_path / "reports"], capture_output=True, text=True, timeout=120)
    answers = json.loads((tmp_path / "out").read_text())
    assert done.returncode == 0 and len(answers) == count, done.stdout + done.stderr
    assert {one["differs"] for one in answers.values()} == {""} and len(list((tmp_path / "reports").iterdir())) == count
    done = subprocess.run([*script, "--options", "tier=off"], capture_output=True, text=True, timeout=120)
    answers = json.loads((tmp_path / "out").read_text())
    assert done.returncode == 1 and {one["differs"] for one in answers.values()} == {"no report"}, done.stdout
    done = subprocess.run([*script, "--built", tmp_path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "mlp-bug: not built" in done.stdout, done.stderr


def test_what_is_known_is_written_as_programs_end(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS / "gpu"))
    programs = importlib.import_module("nvcc_programs")
    seen = []

    def differs(case, program, *_):
        seen.append(json.loads((tmp_path / "out").read_text()))
        return "something" if case else ""
    monkeypatch.setattr(programs, "differs", differs)
    for name in programs.cuda_cases.HEALTHY:
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "argv", ["nvcc_programs.py", "--device", "test", "--built", str(tmp_path), "--out",
                                      str(tmp_path / "out")])
    assert programs.main() == 1
    assert {one["differs"] for one in seen[0].values()} == {"has not ended"}
    assert "" in {one["differs"] for one in seen[-1].values()}, "of those before it"
    assert {one["differs"] for one in json.loads((tmp_path / "out").read_text()).values()} == {"", "something"}


def test_no_library_is_looked_for_in_the_current_folder(monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS / "gpu"))
    programs = importlib.import_module("nvcc_programs")
    monkeypatch.setattr(programs, "libraries", lambda: ["/cuda/lib64"])
    for given, wanted in (("", "/cuda/lib64"), (":/mine:", "/cuda/lib64:/mine")):
        monkeypatch.setenv("LD_LIBRARY_PATH", given)
        assert programs.environment("cuda", None, "mlp")["LD_LIBRARY_PATH"] == wanted
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert programs.environment("cuda", None, "mlp")["LD_LIBRARY_PATH"] == "/cuda/lib64"
