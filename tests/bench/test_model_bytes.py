"""The byte model against the engine: what numsan counts of a small model's training is what the model says it reads."""
import json
import sys

import pytest

import device_environment
import run_numsan

BENCH = run_numsan.REPO / "tests" / "bench"
OPTIONS = {"underflow": 0}  # updates of bfloat16 weights are small, which numsan rightly tells
TINY = ["gpt2-tiny", "llama-tiny", "resnet-tiny"]  # ViT's ops are those of GPT-2 and a convolution
TRAIN = """
import sys
sys.path.insert(0, {bench!r})
import models, torch
step = models.training_step({name!r}, "cpu")
for _ in range(int(sys.argv[1])): step()
"""
COUNT = """
import json, sys
sys.path.insert(0, {bench!r})
import model_bytes, models, tier_rule
events = model_bytes.traced(models.training_step({name!r}, "cpu"), "cpu")
print(json.dumps(dict(integers=sum(not event.outputs for event in events),
                      **{{tier: model_bytes.counted(events, tier, "host") for tier in tier_rule.TIERS}})))
"""
# On the test device. AdamW counts its steps on the host.
DEVICE = """
import sys
sys.path[:0] = [{bench!r}, {fakes!r}]
import ctypes, fakegpu, json, model_bytes, models
step = models.training_step("gpt2-tiny", "fakegpu")
if len(sys.argv) > 1:
    calls = ctypes.CDLL("libcuda.so.1")._ZN9fake_cuda5callsEPKc
    calls.restype = ctypes.c_uint64
    launches = []
    for _ in range(int(sys.argv[1])):
        before = calls(b"cuLaunchKernel")
        step()
        launches.append(calls(b"cuLaunchKernel") - before)
    print(launches)
else:
    traces = {{device: model_bytes.trace_of(step, device) for device in ("cpu", "fakegpu")}}
    places = (("cpu", "host"), ("fakegpu", "device"))
    print(json.dumps({{tier: {{"read": [model_bytes.counted(traces[device].events, tier, place)
                                        for device, place in places],
                               **model_bytes.on_device(traces["fakegpu"], tier)}}
                       for tier in ("full", "boundary", "sentinel")}}))
"""


def coverage(program, tier, steps, folder):
    done = run_numsan.run_watched_fork(program, args=[str(steps)], options=OPTIONS | {"tier": tier}, cwd=folder,
                                       clean=True)
    assert done.returncode == 0 and done.report is not None, done.describe()
    assert done.findings == [], done.describe()
    return done.report["coverage"]


@pytest.mark.xdist_group("model_bytes")  # for each tier there is a process that has torch
@pytest.mark.parametrize("name", [TINY[0], *(pytest.param(name, marks=pytest.mark.nightly) for name in TINY[1:])])
def test_the_engine_reads_what_the_model_says(name, warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(TRAIN.format(bench=str(BENCH), name=name))
    counting = tmp_path / "count.py"
    counting.write_text(COUNT.format(bench=str(BENCH), name=name))
    counted = run_numsan.run_forked(counting)
    assert counted.returncode == 0, counted.describe()
    model = json.loads(counted.stdout)
    for tier in ("full", "boundary", "sentinel"):
        two, five = (coverage(program, tier, steps, tmp_path) for steps in (2, 5))
        read = {"ops": (five["scanned"] - two["scanned"]) / 3, "bytes": (five["bytes"] - two["bytes"]) / 3}
        assert read == {key: model[tier][key] for key in read}, tier
        left_out = (five["skipped"].get("tier", 0) - two["skipped"].get("tier", 0)) / 3
        assert left_out == model["full"]["ops"] - model[tier]["ops"], tier
        assert (five["skipped"]["integer"] - two["skipped"]["integer"]) / 3 == model["integers"]


@pytest.fixture(scope="module")
def on_test_device(warm, tmp_path_factory):
    """run(steps, options): what was said of that many steps; and the model's figures, tier by tier."""
    if not (run_numsan.BUILD / "fakes/libcuda.so.1").exists():
        pytest.skip("no fake CUDA driver in this build, as there is no nvcc")
    folder = tmp_path_factory.mktemp("device")
    program = folder / "device.py"
    program.write_text(DEVICE.format(bench=str(BENCH), fakes=str(run_numsan.REPO / "tests/fakes/torch_device")))
    environment = device_environment.of_test_device()
    counted = run_numsan.run_plain(program, env=environment, timeout=900)
    assert counted.returncode == 0, counted.describe()

    def run(steps, options):
        done = run_numsan.run(program, args=[str(steps)], env=environment, cwd=folder, options=OPTIONS | options)
        assert done.returncode == 0 and done.report is not None, done.describe()
        assert set(done.report["coverage"]["skipped"]) <= {"integer", "tier", "allocation", "without output"}
        return done.report["coverage"], json.loads(done.stdout)
    return run, json.loads(counted.stdout)


@pytest.mark.parametrize("tier", ["full", pytest.param("boundary", marks=pytest.mark.nightly)])
def test_the_engine_reads_what_the_model_says_on_a_device(tier, on_test_device):
    run, model = on_test_device
    reports = {}
    for steps in (2, 5):
        reports[steps], launches = run(steps, {"tier": tier, "budget": 0, "warmup": 0})
    read = {"ops": (reports[5]["scanned"] - reports[2]["scanned"]) / 3,
            "bytes": (reports[5]["bytes"] - reports[2]["bytes"]) / 3}
    assert read == {key: sum(part[key] for part in model[tier]["read"]) for key in read}
    assert launches[2:] == [model[tier]["launches"] + model[tier]["gated"]] * 3


def test_what_sentinel_launches_in_a_step_that_nothing_is_left_for(on_test_device):
    """The engine decides by its own time which steps it reads; a budget that pays for none leaves the same."""
    run, model = on_test_device
    coverage, launches = run(5, {"tier": "full", "budget": "0.000001", "warmup": 0})
    assert launches[2:] == [model["sentinel"]["launches"] + model["sentinel"]["gated"]] * 3
    assert coverage["skipped"]["tier"] > 0


def test_meta_and_cpu_agree(tmp_path):
    """Of a model without attention, whose kernel each device picks for itself."""
    program = tmp_path / "both.py"
    program.write_text(f"import sys; sys.path.insert(0, {str(BENCH)!r})\n" + """
import json, model_bytes, models
print(json.dumps([[(event.op, [output.bytes for output in event.outputs])
                   for event in model_bytes.traced(models.training_step("resnet-tiny", device), device)]
                  for device in ("meta", "cpu")]))
""")
    done = run_numsan.run_plain(program)
    assert done.returncode == 0, done.describe()
    meta, cpu = json.loads(done.stdout)
    assert len(meta) == len(cpu) > 100
    different = {one[0] for one, other in zip(meta, cpu) if one != other}
    # What it keeps for the backward is float32 on other devices, bfloat16 on the CPU.
    assert different == {"aten::native_batch_norm"}


def test_the_table_in_results_is_this_versions():
    """Wherever a rule, a number of it, or a model changes: tests/bench/model_bytes.py --write"""
    done = run_numsan.run_plain_command([run_numsan.PYTHON, BENCH / "model_bytes.py", "--check"], timeout=400)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_rules_come_from_the_sources(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCH))
    import tier_rule
    assert tier_rule.number("host/event/tier_policy.h", "kSmallBytes") == 256 << 10
    assert tier_rule.is_boundary("aten::addmm_") and not tier_rule.is_boundary("aten::add")
    assert tier_rule.listed_class("aten::copy_") == "Overwriting" and tier_rule.listed_class("aten::add_") is None
    with pytest.raises(tier_rule.SourceChanged):
        tier_rule.number("host/event/tier_policy.h", "kNoSuchNumber")
    sys.modules.pop("tier_rule")
