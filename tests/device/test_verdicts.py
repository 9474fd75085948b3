"""Programs of the public suite on the test device, through the CUDA scanner and a fake driver: verdicts of the CPU."""
import json
import os
import re
import subprocess

import pytest

import run_numsan

SUITE = run_numsan.REPO / "tests" / "suite"
RUN_MANY = run_numsan.REPO / "tests" / "device" / "run_many.py"

# What this device cannot run, with or without numsan.
CANNOT_RUN = {
    "compile": "no backend of torch.compile generates code for the test device",
    "gloo": "gloo takes no tensors of the test device",
}
NO_NESTED_TENSORS = ("q22_nested_tensor_tail",)
# One in so many of the bug programs runs in CI; all run at night.
EVERY = 1 if "NUMSAN_TEST_ALL" in os.environ else 3
# Updates that a weight's type loses need elements of both side by side, which no scan of a device hands over.
TOLD_ON_THE_HOST = ("p87_bf16_norm_gain", "p89_bf16_teacher")


def programs(folder):
    """Those that the device can run."""
    for path in sorted((SUITE / folder).glob("*.py")):
        needs = re.search(r"# label:.*\bneeds=(\w*)", path.read_text()).group(1)
        if needs not in CANNOT_RUN and path.stem not in NO_NESTED_TENSORS + TOLD_ON_THE_HOST:
            yield path


def verdict(folder, name):
    """What the first finding says of the bug; None without a finding."""
    path = folder / f"{name}.json"
    findings = json.loads(path.read_text())["findings"] if path.exists() else []
    if not findings:
        return None
    first = findings[0]
    # Optimizers work on lists by default where the device is not the CPU.
    op = first["op"].replace("aten::_foreach_", "aten::").rstrip("_")
    return {"line": (first.get("location") or {}).get("line"), "op": op,
            **{key: first[key] for key in ("severity", "mechanism", "phase", "step")}}


# A budget that pays for no step: only what leaves is read, all else hangs on looks back. So it is in most steps of
# sentinel once its opening is over; which ones it reads hangs on the time that they take.
LEAN = {"tier": "full", "budget": "0.000001", "warmup": "0"}
SENTINEL = {"tier": "sentinel", "budget": "5"}  # the default


class Runs:
    """Runs all programs once for each device and options that a test asks for; a slow machine does not make numsan read
    less, unless they say so."""

    def __init__(self, chosen, environment, factory):
        self.chosen, self.environment, self.factory = chosen, environment, factory
        self.names = [path.stem for path in chosen]
        self.folders = {}

    def folder(self, device, options=None):
        """The folder with reports and statuses."""
        key = json.dumps([device, options])
        if key not in self.folders:
            folder = self.factory.mktemp(device)
            command, environment = run_numsan.attached(
                [run_numsan.PYTHON, RUN_MANY, folder, device, *self.chosen], report=folder / "report-%p.json",
                options={"log": folder / "log-%p.txt", "budget": "0", **(options or {})}, env=self.environment)
            environment["NUMSAN_CACHE"] = str(run_numsan.CACHE)
            done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=1500)
            assert done.returncode == 0, done.stderr[-4000:]
            self.folders[key] = folder
        return self.folders[key]


@pytest.fixture(scope="module", params=[pytest.param(folder, marks=pytest.mark.xdist_group(f"device_{folder}"))
                                        for folder in ("programs", "controls")])
def runs(request, test_device, tmp_path_factory):
    chosen = list(programs(request.param))[::EVERY if request.param == "programs" else 1]
    return Runs(chosen, test_device, tmp_path_factory)


def differing(runs):
    """{program: its verdicts on the CPU and on the device}, of those where they are not the same."""
    cpu, device = runs.folder("cpu"), runs.folder("test")
    both = {name: (verdict(cpu, name), verdict(device, name)) for name in runs.names}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def test_each_program_has_the_verdict_of_the_cpu(runs):
    cpu, device, names = runs.folder("cpu"), runs.folder("test"), runs.names
    statuses = [json.loads((folder / "status.json").read_text()) for folder in (cpu, device)]
    assert [(name, *(status[name] for status in statuses)) for name in names
            if statuses[0][name] != statuses[1][name]] == []
    different = differing(runs)
    assert different == {}, json.dumps(different, indent=1)
    found = sum(verdict(device, name) is not None for name in names)
    assert found > 0.9 * len(names) if names[0].startswith("p") else found < 0.1 * len(names)


def test_the_device_was_scanned(runs):
    """A run whose tensors nobody looked at would be silent, too."""
    device = runs.folder("test")
    reports = [json.loads(path.read_text()) for path in sorted(device.glob("[pq]*.json"))]
    assert reports
    for report in reports:
        assert report["coverage"]["scanned"] > 0
        harmless = {"integer", "allocation", "view", "without output"}
        if report["run"]["ended"] is None:  # told while the finding was made: what came after it is still to be judged
            harmless.add("not judged yet")
        assert set(report["coverage"]["skipped"]) <= harmless, report["coverage"]
        assert report["coverage"]["scanned"] + sum(report["coverage"]["skipped"].values()) == report["coverage"]["ops"]
        assert report["run"]["tier"] == "sentinel" and report["run"]["devices"], report["run"]
        assert report["coverage"]["blind_spots"] == []


def forward_births(there):
    """Of a folder's verdicts, those of births in a forward pass."""
    return {name: found for name, found in there.items() if found is not None and found["phase"] == "forward"}


@pytest.mark.nightly
def test_little_is_read_and_nothing_healthy_is_blamed(runs):
    """What lean steps name is less sure: the share is what a look back and what can be inferred are worth."""
    cpu, lean, names = runs.folder("cpu"), runs.folder("test", LEAN), runs.names
    reports = [json.loads(path.read_text()) for path in sorted(lean.glob("[pq]*.json"))]
    here, there = ({name: verdict(folder, name) for name in names} for folder in (lean, cpu))
    assert [name for name in names if here[name] is not None and there[name] is None] == []
    if names[0].startswith("p"):
        assert any(report["coverage"]["skipped"].get("tier", 0) > report["coverage"]["scanned"] for report in reports)
        assert sum(here[name] is not None for name in names) > 0.9 * len(names)
        assert sum(here[name] is not None and here[name]["line"] == there[name]["line"] for name in names) > \
            0.6 * len(names)
        births = forward_births(there)
        named = sum(here[name] is not None and here[name]["op"] == found["op"] for name, found in births.items())
        assert named > 0.65 * len(births) > 20 / EVERY, (named, len(births))


@pytest.mark.nightly
def test_sentinel_names_what_full_names(runs):
    """By the rule for memory of the host, where what is tiny is read at once."""
    cpu, sentinel, names = runs.folder("cpu"), runs.folder("cpu", SENTINEL), runs.names
    here, there = ({name: verdict(folder, name) for name in names} for folder in (sentinel, cpu))
    assert [name for name in names if here[name] is not None and there[name] is None] == []
    births = forward_births(there)
    differ = {name: (found["op"], here[name]) for name, found in births.items()
              if here[name] is None or here[name]["op"] != found["op"]}
    assert len(differ) <= 0.15 * len(births), differ
    assert len(births) > 20 / EVERY or not names[0].startswith("p")
