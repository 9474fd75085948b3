"""The byte model against the engine: what numsan counts of a small model's training is what the model says it reads."""
import json
import os
import sys

import pytest

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
import fakegpu, json, model_bytes, models
step = models.training_step("gpt2-tiny", "fakegpu")
if len(sys.argv) > 1:
    for _ in range(int(sys.argv[1])): step()
else:
    events = {{device: model_bytes.traced(step, device) for device in ("cpu", "fakegpu")}}
    places = (("cpu", "host"), ("fakegpu", "device"))
    print(json.dumps({{tier: [model_bytes.counted(events[device], tier, place) for device, place in places]
                       for tier in ("full", "boundary")}}))
"""


def coverage(program, tier, steps, folder):
    done = run_numsan.run(program, args=[str(steps)], options=OPTIONS | {"tier": tier}, cwd=folder)
    assert done.returncode == 0 and done.report is not None, done.describe()
    assert done.findings == [], done.describe()
    return done.report["coverage"]


@pytest.mark.parametrize("name", TINY)
def test_the_engine_reads_what_the_model_says(name, warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(TRAIN.format(bench=str(BENCH), name=name))
    counting = tmp_path / "count.py"
    counting.write_text(COUNT.format(bench=str(BENCH), name=name))
    counted = run_numsan.run_plain(counting)
    assert counted.returncode == 0, counted.describe()
    model = json.loads(counted.stdout)
    for tier in ("full", "boundary", "sentinel"):
        two, five = (coverage(program, tier, steps, tmp_path) for steps in (2, 5))
        read = {"ops": (five["scanned"] - two["scanned"]) / 3, "bytes": (five["bytes"] - two["bytes"]) / 3}
        assert read == {key: model[tier][key] for key in read}, tier
        left_out = (five["skipped"].get("tier", 0) - two["skipped"].get("tier", 0)) / 3
        assert left_out == model["full"]["ops"] - model[tier]["ops"], tier
        assert (five["skipped"]["integer"] - two["skipped"]["integer"]) / 3 == model["integers"]


@pytest.mark.parametrize("tier", ["full", "boundary"])  # what sentinel reads of ops depends on the time it took
def test_the_engine_reads_what_the_model_says_on_a_device(tier, warm, tmp_path):
    if not (run_numsan.BUILD / "fakes/libcuda.so.1").exists():
        pytest.skip("no fake CUDA driver in this build, as there is no nvcc")
    fakes = run_numsan.REPO / "tests/fakes/torch_device"
    program = tmp_path / "device.py"
    program.write_text(DEVICE.format(bench=str(BENCH), fakes=str(fakes)))
    environment = {"NUMSAN_BUILD": str(run_numsan.BUILD),
                   "FAKEGPU_CACHE": os.environ.get("FAKEGPU_CACHE", str(run_numsan.CACHE / "tests"))}
    counted = run_numsan.run_plain(program, env=environment, timeout=900)
    assert counted.returncode == 0, counted.describe()
    model = json.loads(counted.stdout)[tier]
    reports = {}
    for steps in (2, 5):
        done = run_numsan.run(program, args=[str(steps)], env=environment, cwd=tmp_path,
                              options=OPTIONS | {"tier": tier, "budget": 0, "warmup": 0})
        assert done.returncode == 0 and done.report is not None, done.describe()
        harmless = {"integer", "tier", "allocation", "without output"}
        assert set(done.report["coverage"]["skipped"]) <= harmless, done.report["coverage"]
        reports[steps] = done.report["coverage"]
    read = {"ops": (reports[5]["scanned"] - reports[2]["scanned"]) / 3,
            "bytes": (reports[5]["bytes"] - reports[2]["bytes"]) / 3}
    assert read == {key: sum(part[key] for part in model) for key in read}


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
    assert tier_rule.number("host/session/tier_policy.h", "kSmallBytes") == 256 << 10
    assert "mm" in tier_rule.BOUNDARY and "add" not in tier_rule.BOUNDARY
    assert tier_rule.plain("aten::addmm_") == "addmm"
    with pytest.raises(tier_rule.SourceChanged):
        tier_rule.number("host/session/tier_policy.h", "kNoSuchNumber")
    sys.modules.pop("tier_rule")
