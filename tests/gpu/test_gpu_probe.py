"""numsan_gpu_probe on the fake driver: what its JSON has, and what becomes of a run in which the driver fails or hangs.
Its figures there mean nothing, and none is compared."""
import json
import os
import shutil
import subprocess
import time

import pytest

import run_numsan

PROBE = run_numsan.BUILD / "bin/numsan_gpu_probe"
FAKES = run_numsan.BUILD / "fakes"
PHASES = ["facts", "twins", "bandwidth", "calls", "launches", "graph", "latency", "worst"]
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
NOT_SUPPORTED = 801


@pytest.fixture(scope="module", autouse=True)
def probe():
    if PROBE.exists() and (FAKES / "libcuda.so.1").exists():
        return
    if shutil.which("nvcc") is None:
        pytest.skip("no probe in this build, as there is no nvcc")
    pytest.fail("numsan_gpu_probe or the fake CUDA driver is missing: build first (scripts/build)", pytrace=False)


def start(out, *more, script="", libraries=FAKES):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "FAKE_CUDA": script}
    limit = () if "--max-bytes" in more else ("--max-bytes", "65536")
    return subprocess.Popen([PROBE, "--out", out, *limit, *more], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run(out, *more, status=0, **settings):
    """(document, lines): of stdout one line a phase."""
    with start(out, *more, **settings) as process:
        text = process.communicate(timeout=120)[0]
    assert process.returncode == status, text
    return json.loads(out.read_text()) if out.exists() else None, text.splitlines()


def results(document):
    return {name: phase["result"] for name, phase in document["phases"].items()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(tmp_path_factory.mktemp("probe") / "probe.json")


def test_every_phase_passes_and_says_so_in_a_line(whole):
    document, lines = whole
    assert results(document) == {name: "passed" for name in PHASES}
    assert [line.split()[:2] for line in lines] == [[name, "passed"] for name in PHASES]
    assert document["under_way"] is None and document["finished"] is True
    assert all(phase["seconds"] >= 0 and phase["line"] and "failure" not in phase
               for phase in document["phases"].values())
    assert not any(phase["data"].get("cut_short") for phase in document["phases"].values())


def test_a_fake_device_is_known_by_its_name(whole):
    document, lines = whole
    assert document["device"] == document["phases"]["facts"]["data"]["device"] == "numsan fake device 0"
    assert "numsan fake device 0" in lines[0]


def test_facts(whole):
    facts = whole[0]["phases"]["facts"]["data"]
    assert facts["attributes"]["multiprocessors"] == 4 and facts["attributes"]["clock_khz"] is None
    assert facts["cuda_of_driver"] == 13000 and facts["memory_bytes"] >= facts["free_bytes"] > 0
    assert facts["host_memory"]["works"] is True
    assert {name: kernel["loads"] for name, kernel in facts["kernels"].items()} == {
        f"numsan_{kernel}_{table}": True for kernel in ("scan", "look") for table in ("small", "large")}
    assert all({"threads", "registers", "local_bytes"} <= set(kernel) for kernel in facts["kernels"].values())


def test_twins(whole):
    twins = whole[0]["phases"]["twins"]["data"]
    assert twins["disagreements"] == 0 and twins["first_disagreements"] == []
    compared = twins["tensors_compared"]
    assert len(compared) == 12 and min(compared.values()) > 20
    assert all(compared[name] > 65536 for name in ("float16", "bfloat16")) and compared["float8_e5m2"] > 256
    assert twins["looks"]["operands"] > 100 and twins["looks"]["operands_of_many"] == twins["looks"]["room"]
    replayed = twins["looks_in_replays"]
    assert replayed["replays"] == 2 and replayed["operands"] > 2 * twins["looks"]["room"]
    assert twins["replays"] == 3 and twins["streams"] == {"streams": 8, "scans": 128, "hits": 64}


def is_spread(value):
    return value["low"] <= value["median"] <= value["high"] and value["turns"] > 0


def test_rates(whole):
    rows = whole[0]["phases"]["bandwidth"]["data"]["rows"]
    types = ["float32", "float64", "float16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e8m0fnu"]
    assert {(row["type"], row["bytes"], row["l2"]) for row in rows} == {
        (kind, size, l2) for kind in types for size in (1024, 4096, 16384, 65536) for l2 in ("cold", "warm")}
    assert all(is_spread(row[key]) for row in rows for key in ("scan_microseconds", "copy_microseconds", "of_copy"))


def test_costs(whole):
    phases = {name: phase["data"] for name, phase in whole[0]["phases"].items()}
    calls = phases["calls"]["driver_calls"]
    assert {"cuCtxGetCurrent", "cuCtxGetId", "cuStreamGetCaptureInfo", "cuLaunchKernel, small table"} <= set(calls)
    assert all(map(is_spread, calls.values())) and all(map(is_spread, phases["calls"]["scans"].values()))
    assert {"small", "large"} <= set(phases["calls"]["scans"])
    launches = phases["launches"]["launches"]
    assert len(launches) == 9 and {row["blocks"] for row in launches.values()} > {1}
    assert [name for name, row in launches.items() if row["look_blocks"]] == ["small table, and a look"]
    assert all(is_spread(row[key]) for row in launches.values() for key in ("device_microseconds", "host_nanoseconds"))
    for row in phases["graph"]["rows"]:
        assert is_spread(row["bare"]["microseconds"]) and is_spread(row["scanned"]["microseconds_a_node"])
    assert all(is_spread(row["hit_microseconds"]) and row["bad_without_a_hit"] == 0
               for row in phases["latency"]["rows"])


def check_worst_cases(document):
    worst = document["phases"]["worst"]["data"]
    rows = worst["rows"]
    assert worst["missing_slots"] == 0
    assert [row["what"] for row in rows] == ["100 bad gradients", "told"] + 6 * ["one NaN"]
    assert [(row["inputs"], row["place"]) for row in rows[2:]] == [
        (inputs, place) for inputs in (1, 8) for place in ("first", "middle", "last")]
    assert all(is_spread(row["microseconds"]) and is_spread(row["healthy_microseconds"]) for row in rows)


def test_worst_cases(whole):
    check_worst_cases(whole[0])


def test_exact_passes_that_take_more_than_their_time_are_measured_all_the_same(tmp_path):
    """Gradients that are large enough owe more than they may after six turns, and large operands ask for looks."""
    document, _ = run(tmp_path / "out", "--phases", "worst", "--max-bytes", str(4 << 20))
    assert document["phases"]["worst"]["data"]["rows"][0]["bytes"] > 64 << 20
    check_worst_cases(document)


def test_a_phase_that_fails_names_the_call_and_the_others_run(tmp_path):
    document, lines = run(tmp_path / "out", "--phases", "facts,bandwidth,latency", status=1,
                          script=f"cuMemcpyDtoDAsync={NOT_SUPPORTED}")
    assert results(document) == {"facts": "passed", "bandwidth": "failed", "latency": "passed"}
    assert document["phases"]["bandwidth"]["failure"] == {
        "call": "cuMemcpyDtoDAsync", "result": "CUDA_ERROR_NOT_SUPPORTED", "code": NOT_SUPPORTED}
    assert document["phases"]["bandwidth"]["data"]["pool_bytes"] > 0, "what it had found"
    assert "bandwidth failed" in lines[1] and "cuMemcpyDtoDAsync: CUDA_ERROR_NOT_SUPPORTED" in lines[1]


def test_a_capture_that_fails_leaves_the_stream_to_the_others(tmp_path):
    document, _ = run(tmp_path / "out", "--phases", "twins,graph,worst", status=1,
                      script=f"cuGraphInstantiate={NOT_SUPPORTED}")
    assert results(document) == {"twins": "failed", "graph": "failed", "worst": "passed"}
    for name in ("twins", "graph"):
        assert document["phases"][name]["failure"]["call"] == "cuGraphInstantiateWithFlags"
    assert len(document["phases"]["twins"]["data"]["tensors_compared"]) == 12, "what does without a graph was compared"


def test_without_kernels_each_phase_says_so(tmp_path):
    document, _ = run(tmp_path / "out", "--phases", "facts,latency", status=1, script="cuModuleLoadData=209")
    assert results(document) == {"facts": "failed", "latency": "failed"}
    assert document["phases"]["facts"]["failure"]["result"] == "CUDA_ERROR_NO_BINARY_FOR_GPU"
    assert "cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU" in document["phases"]["latency"]["line"]
    assert document["phases"]["facts"]["data"]["device"] == "numsan fake device 0"


def test_in_a_lost_context_nothing_more_runs(tmp_path):
    document, lines = run(tmp_path / "out", "--phases", "facts,latency", status=1, script="cuCtxSynchronize=700")
    assert results(document) == {"facts": "passed", "latency": "not run"}
    assert "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS" in lines[1]


def test_a_phase_that_hangs_is_named_while_it_does_and_ended(tmp_path):
    out = tmp_path / "out"
    with start(out, "--phases", "facts,bandwidth,latency", "--budget-s", "1",
               script="cuMemcpyDtoDAsync=stall") as process:
        deadline = time.monotonic() + 60
        seen = None
        while seen != "bandwidth" and time.monotonic() < deadline:
            seen = json.loads(out.read_text())["under_way"] if out.exists() else None
        text = process.communicate(timeout=60)[0]
    assert seen == "bandwidth", "it was recorded before it began"
    assert process.returncode == 1 and "bandwidth timed out" in text
    document = json.loads(out.read_text())
    assert results(document) == {"facts": "passed", "bandwidth": "timed out", "latency": "not run"}
    assert document["phases"]["facts"]["data"]["kernels"]


def test_a_run_that_is_killed_leaves_what_it_had(tmp_path):
    out = tmp_path / "out"
    with start(out, "--phases", "facts,graph", script="cuGraphLaunch=stall") as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if out.exists() and json.loads(out.read_text())["under_way"] == "graph":
                break
        process.kill()
    assert results(json.loads(out.read_text())) == {"facts": "passed", "graph": "under way"}


def test_time_that_is_over_ends_measurements_and_is_no_failure(tmp_path):
    document, _ = run(tmp_path / "out", "--phases", "bandwidth", "--budget-s", "0.01")
    assert document["phases"]["bandwidth"]["data"]["cut_short"] is True


@pytest.mark.parametrize("script, reason", (("devices=0", "CUDA_ERROR_NO_DEVICE"),
                                            ("version=12000", "numsan needs 12.1 or later")))
def test_without_a_device_or_with_an_old_driver(tmp_path, script, reason):
    document, lines = run(tmp_path / "out", status=77, script=script)
    assert document is None and len(lines) == 1 and reason in lines[0]


def test_without_a_driver(tmp_path):
    (tmp_path / "libcuda.so.1").write_text("not a library")
    document, lines = run(tmp_path / "out", status=77, libraries=tmp_path)
    assert document is None and lines == ["numsan_gpu_probe: no CUDA driver here (libcuda.so.1)"]


def test_wrong_usage(tmp_path):
    for wrong in (["--phases", "nonsense"], ["--max-bytes", "1"], ["--nonsense"]):
        assert run(tmp_path / "out", *wrong, status=2)[0] is None


def test_where_it_cannot_write_it_says_so(tmp_path):
    _, lines = run(tmp_path / "no" / "out", "--phases", "facts", status=1)
    assert any("No such file" in line for line in lines)


def test_it_is_one_small_file_that_needs_libc_only(whole):
    """3 MB at most with the kernels of the few architectures that a machine needs; those of all take that alone."""
    kernels = whole[0]["phases"]["facts"]["data"]["fatbin_bytes"]
    assert PROBE.stat().st_size <= (3 << 20) if kernels < 1 << 20 else PROBE.stat().st_size - kernels <= 2 << 20
    listed = subprocess.run(["readelf", "-dW", PROBE], capture_output=True, text=True, check=True).stdout
    needed = {line.split("[")[1].rstrip("]") for line in listed.splitlines() if "(NEEDED)" in line}
    assert "libc.so.6" in needed and needed <= LIBC
