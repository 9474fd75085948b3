"""The parts, in the order in which they run."""
import json
import pathlib
import re

import gpu_targets
from part import Command, Part

FAKES = "tests/fakes/torch_device"
PROBED = "probe.json"
PROBE_SECONDS = 35
PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "build/programs_cuda"  # where they may be carried along
RECORDED = ["gpt2-124m-b1", "resnet-50"]


def load(setting, part):
    return json.loads(setting.result(part).read_text())


def last_line(texts):
    lines = texts[-1].strip().splitlines() if texts else []
    return lines[-1] if lines else "nothing printed"


def probe_commands(setting):
    program = setting.probe or setting.build / "bin/numsan_gpu_probe"
    argv = [program, "--out", setting.kept(PROBED), "--budget-s", PROBE_SECONDS]
    if setting.device == "cuda":
        yield Command(argv, may_fail=True)
    else:
        yield Command([*argv, "--max-bytes", 1 << 16], {"LD_LIBRARY_PATH": str(program.parent.parent / "fakes")},
                      may_fail=True)


def read_probe(setting, texts):
    document = json.loads(setting.kept(PROBED).read_text())
    bad = [f"{name} {phase['result']}: {phase.get('line', '')}" for name, phase in document["phases"].items()
           if phase["result"] != "passed"]
    line = f"{document['device']}: {len(document['phases'])} phases, {'; '.join(bad) if bad else 'all passed'}"
    return line[:400], document, not bad


def build_commands(setting):
    configure = ["cmake", "-S", ".", "-B", setting.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DNUMSAN_BENCH=ON", "-DNUMSAN_CUDA=ON", "-DNUMSAN_CUDA_ARCHITECTURES=90"]
    if setting.carried:
        configure.append(f"-DNUMSAN_CARRIED={setting.carried.resolve()}")
    yield Command(configure)
    yield Command(["ninja", "-C", setting.build, f"-j{setting.jobs}", "bin/numsan", "lib/libnumsan.so",
                   "lib/libnumsan_core.so", "numsan_gpu_probe", "numsan_gpu_tests", "numsan_fake_cuda",
                   "numsan_scan_bench_library", "numsan_scan_bench_peers", "numsan_cuda_scanner_bench",
                   "numsan_cuda_programs"])
    # Compiles the adapter.
    yield Command([setting.build / "bin/numsan", "run", "--report", "none", "--", setting.python, "-c", "import torch"])
    yield Command([setting.build / "bin/numsan", "doctor", "--", setting.python, "-c", "import torch"], may_fail=True)


def read_build(setting, texts):
    doctor = texts[3].strip() if len(texts) == 4 else ""
    return f"built, and the adapter; doctor: {doctor.splitlines()[-1]}", {"doctor": doctor}, True


def test_commands(setting):
    which = ["-L", "gpu"] if setting.device == "cuda" else ["-R", "gpu_tests.on_the_fake_driver"]
    yield Command(["ctest", "--test-dir", setting.build, *which, "-V", "--no-tests=error"])
    # The host's cost on a driver whose launches do nothing: the scanner's own.
    yield Command([setting.build / "bin/numsan_cuda_scanner_bench", "--benchmark_min_time=0.2",
                   "--benchmark_repetitions=5", "--benchmark_report_aggregates_only=true", "--benchmark_format=json",
                   f"--benchmark_out={setting.result('host')}", "--benchmark_out_format=json"])


def host_medians(document):
    """{name: nanoseconds} of a Google Benchmark result."""
    medians = (one for one in document["benchmarks"] if one.get("aggregate_name") == "median")
    return {one["run_name"]: one["real_time"] for one in medians}


def read_tests(setting, texts):
    found = re.search(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)", texts[0])
    if found is None:
        raise ValueError("ctest said nothing of tests")
    ran = re.findall(r"\[==========\] (\d+) tests? from", texts[0])
    skipped = "SKIPPED" in texts[0] and setting.device == "cuda"
    data = {"failed": int(found[2]), "tests": sum(map(int, ran)), "host": host_medians(load(setting, "host"))}
    return f"{data['tests']} tests, {'skipped' if skipped else found[0]}", data, not skipped and data["failed"] == 0


def built_programs(setting):
    """What the part `build` built, else what was carried along. Both folders are there before anything is in them."""
    here = setting.build / "programs_cuda"
    return PROGRAMS if not (here / "mlp").exists() and (PROGRAMS / "mlp").exists() else here


def raw_commands(setting):
    yield Command([setting.python, "tests/gpu/nvcc_programs.py", "--device", setting.device, "--built",
                   built_programs(setting), "--options", setting.options, "--jobs", max(1, min(8, setting.jobs // 2)),
                   "--out", setting.result("raw"), "--reports", setting.reports("raw")], may_fail=True)


def read_raw(setting, texts):
    if not setting.result("raw").exists():
        raise ValueError("no program was started")
    result = load(setting, "raw")
    bad = [f"{name}: {one['differs']}" for name, one in result.items() if one["differs"]]
    line = f"{len(result)} programs, {'; '.join(bad) if bad else 'all as they should be'}"
    return line[:400], result, bool(result) and not bad


def attach_commands(setting):
    yield Command([setting.python, "tests/gpu/attach.py", "--device", setting.device, "--out", setting.result("attach"),
                   "--options", setting.options, "--reports", setting.reports("attach")], may_fail=True)


def read_attach(setting, texts):
    answers = load(setting, "attach")
    asked = {name: one for name, one in answers.items() if one["answer"] is not None}
    bad = [name for name, one in asked.items() if one["answer"] == "no" and one["wanted"]]
    return (f"{len(asked)} questions, {len(bad)} with another answer than wanted{': ' + ', '.join(bad) if bad else ''}",
            answers, not bad)


def suite_commands(setting):
    yield Command([setting.python, "tests/gpu/suite_verdicts.py", "--device", setting.device, "--jobs",
                   max(1, min(8, setting.jobs // 2)), "--options", setting.options, "--out", setting.result("suite"),
                   "--reports", setting.reports("suite"),
                   *([] if setting.device == "cuda" else ["--only", "p0[1-4]*"])], may_fail=True)


def read_suite(setting, texts):
    result = load(setting, "suite")
    return last_line(texts), result, not result["different"] and result["coverage"]["scanned"] > 0


def scan_commands(setting):
    on = ["--device", "cuda"] if setting.device == "cuda" else ["--device", "fakegpu", "--smoke"]
    yield Command([setting.python, "tests/bench/cuda_scan.py", *on, "--out", setting.result("scan")], fakes(setting))


def fakes(setting):
    return {} if setting.device == "cuda" else {"PYTHONPATH": FAKES}


def read_scan(setting, texts):
    result = load(setting, "scan")
    largest = max(gpu_targets.plain_rows({"scan": result}), key=lambda row: row["bytes"])
    rate = largest["subjects"]["scan"]
    host = ", ".join(f"{one['what']} {one['nanoseconds']['median']:.0f} ns" for one in result["host"])
    return (f"float32, {largest['bytes'] >> 10} KB: {rate['gb_per_s']['median']:.0f} GB/s, "
            f"{rate['of_copy']['median']:.2f} of a copy's rate; on the host: {host}", result,
            not result["wrong"])


def step_commands(setting):
    argv = [setting.python, "tests/bench/cuda_steps.py", "--tiers", ",".join(setting.tiers), "--also",
            "default=tier=auto", "--also", "governed=tier=full", "--out", setting.result("steps"), "--reports",
            setting.reports("steps")]
    if setting.device == "cuda":
        # What ends last is what matters least if time runs out.
        argv += ["--works", "gpt2-350m,gpt2-124m-b1,graph-100,llama-1b,gpt2-124m-b8,resnet-50,vit-b", "--seconds", 0.2,
                 "--together", 8]
    else:
        argv += ["--device", "fakegpu", "--works", "gpt2-tiny", "--turns", 2, "--seconds", 0.1, "--together", 3]
    yield Command(argv, fakes(setting), may_fail=True)


def read_steps(setting, texts):
    result = load(setting, "steps")
    if not result["works"]:
        raise ValueError(f"nothing was measured: {result['failed']}")
    parts = []
    for row in result["works"]:
        more = {name: 100 * (one["of_bare"]["median"] - 1) for name, one in row["configurations"].items()}
        parts.append(f"{row['work']} " + " ".join(f"{name} {more[name]:+.1f} %" for name in more if name != "bare"))
    return "; ".join(parts), result, not result["failed"]


def record_commands(setting):
    device, works = ("cuda", RECORDED) if setting.device == "cuda" else ("fakegpu", ["gpt2-tiny"])
    for work in works:
        yield Command([setting.python, "tests/bench/step_trace.py", work, "--device", device, "--out",
                       setting.reports("record") / f"{work}.txt"], fakes(setting))


def read_record(setting, texts):
    sizes = {path.stem: len(path.read_text().splitlines()) for path in sorted(setting.reports("record").iterdir())}
    return ", ".join(f"{work}: {lines} lines" for work, lines in sizes.items()), {"lines": sizes}, bool(sizes)


def score_commands(setting):
    yield Command([setting.python, "tests/suite/run", "--device", "cuda", "--numsan", setting.build / "bin/numsan",
                   "--jobs", max(1, setting.jobs - 4), "--cache", setting.work / "suite-cache", "--out",
                   setting.reports("score") / "score.json", "--quiet", "--timeout", 60], may_fail=True)


def read_score(setting, texts):
    scores = json.loads((setting.reports("score") / "score.json").read_text())["scores"]
    shown = {key: value for key, value in scores.items() if isinstance(value, dict) and "good" in value}
    return ", ".join(f"{key} {value['good']}/{value['of']}" for key, value in shown.items()), {"scores": scores}, True


# The probe comes first where it is there already, as it brings the most in the least time; else behind `build`.
# Limits are those of a run of all parts, eight minutes together; of fewer they are longer, and what one part leaves of
# its time is the next one's.
PARTS = [
    Part("probe", "numsan_gpu_probe: facts of the device, kernels against their twins on the host, rates and costs", 40,
         probe_commands, read_probe),
    Part("build", "configures and compiles what the other parts run, and the adapter; numsan doctor", 110,
         build_commands, read_build, needs_gpu=False),
    Part("tests", "tests with the label gpu; the scanner's own cost on the host", 25, test_commands, read_tests),
    Part("raw", "CUDA programs without torch, bare and watched: the launch or call that made a bad value", 10,
         raw_commands, read_raw),
    Part("attach", "programs bare and watched: same bits, graphs, profiler, workers, errors, memory", 60,
         attach_commands, read_attach),
    Part("suite", "the public suite's programs on the device, verdicts compared with the CPU's", 55,
         suite_commands, read_suite),
    Part("scan", "scan rates by size, type and batch against a copy, CUB, Thrust and torch; cost to the host", 35,
         scan_commands, read_scan),
    Part("steps", "training steps and graph replays by tier against bare, anomaly mode and hooks", 100,
         step_commands, read_steps),
    Part("record", "the ops of training steps, in order, as tests play them", 10, record_commands, read_record),
    Part("score", "the public suite scored against its labels, bare and watched", 35, score_commands, read_score,
         on_test_device=False),
]
