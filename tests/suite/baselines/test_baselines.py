"""Each baseline finds one bug made for it, is silent on a healthy program, leaves stdout alone."""
import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent

PROGRAM = '''# label: category={category} family={family}
import torch

FAULT = "{fault}"
torch.manual_seed({seed})


class Shift(torch.nn.Module):
    def forward(self, x):
        return (x - 100.0).sqrt() if FAULT == "module" and step == 2 else x.tanh()


model = torch.nn.Sequential(torch.nn.Linear(4, 8), Shift(), torch.nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.rand(16, 4) * 2 - 1
for step in range(4):
    loss = (model(data) - data.sum(1, keepdim=True)).pow(2).mean()
    if FAULT == "loss" and step == 2:
        loss = loss + torch.log(loss.detach() * 0)
    if FAULT == "slope" and step == 2:
        loss = loss + (model[2].weight * 0).sum().sqrt()
    opt.zero_grad()
    loss = loss * 1e4 if FAULT == "rate" and step == 2 else loss
    loss.backward()
    if FAULT == "rate" and step == 2:
        opt.param_groups[0]["lr"] = 1e38
    opt.step()
print("done", step)
'''

# baseline: the fault it is made for, then op, phase and a part of the line of its first finding
CASES = {
    "anomaly_mode": ("slope", "MulBackward0", "backward", "weight * 0"),
    "module_hooks": ("module", "module:Shift", "forward", "model(data)"),
    "hooks_and_parameters": ("rate", "parameter", "optimizer", "opt.step()"),
    "dispatch_mode": ("slope", "aten::div", "backward", "weight * 0"),
    "frames": ("module", "module:Shift", "forward", "model(data)"),
    "parameter_scan": ("rate", "parameter", "optimizer", "opt.step()"),
    "loss_only": ("loss", "loss", "forward", "loss.backward()"),
    "rules": ("loss", "training", None, "loss.backward()"),
}


def text_of(fault, seed=0, category="", family=""):
    """The program with one fault, or with none."""
    return (PROGRAM.replace("{fault}", fault).replace("{seed}", str(seed))
            .replace("{category}", category).replace("{family}", family))


pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("baselines")]  # one worker runs them


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs all faults and the healthy program under all baselines; returns a look-up."""
    folder = tmp_path_factory.mktemp("baselines")
    programs = {"none": text_of("none")}
    programs |= {case[0]: text_of(case[0]) for case in CASES.values()}
    for seed in range(1, 5):
        programs[f"healthy{seed}"] = text_of("none", seed)
        programs[f"bug{seed}"] = text_of("loss", seed, category="N4", family=f"family{seed}")
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text)

    def run(baselines, names):
        files = [folder / f"{name}.py" for name in names]
        subprocess.run([sys.executable, HERE / "run_all.py", "--only", ",".join(baselines), folder,
                        *files], check=True, timeout=1200)

    run([*CASES, "frequency_prior"], [name for name in programs if name[-1].isalpha()])
    run(["dynamics_learner"], [name for name in programs if name[-1].isdigit()])
    subprocess.run([sys.executable, HERE / "dynamics_learner.py", folder / "dynamics_learner"],
                   check=True, timeout=600)

    def report(baseline, name):
        path = folder / baseline / f"{name}.json"
        assert path.exists(), path.with_suffix(".err").read_text()
        found = json.loads(path.read_text())
        assert found["failed"] is None
        printed = path.with_suffix(".out").read_text()
        assert printed == ("" if found.get("stopped") else "done 3\n")
        return found["findings"]

    return report


@pytest.mark.parametrize("baseline", CASES)
def test_finds_its_bug(baseline, runs):
    fault, op, phase, part = CASES[baseline]
    first = runs(baseline, fault)[0]
    assert (first["op"], first["phase"], first["step"]) == (op, phase, 2)
    assert part in text_of(fault).splitlines()[first["location"]["line"] - 1]
    assert first["severity"] == "error"


@pytest.mark.parametrize("baseline", CASES)
def test_silent_on_healthy_program(baseline, runs):
    assert runs(baseline, "none") == []


def test_anomaly_mode_is_blind_to_infinity(runs):
    assert runs("anomaly_mode", "loss") == []


def test_frequency_prior_always_answers_at_the_loss(runs):
    first = runs("frequency_prior", "none")[0]
    assert "pow(2).mean()" in text_of("none").splitlines()[first["location"]["line"] - 1]


def test_dynamics_learner_learns_from_other_families(runs):
    for seed in range(1, 5):
        assert runs("dynamics_learner", f"healthy{seed}") == []
        assert runs("dynamics_learner", f"bug{seed}")[0]["category"]["id"] == "N4"


def test_driver_alone(tmp_path):
    program, out = tmp_path / "program.py", tmp_path / "out.json"
    program.write_text(text_of("loss"))
    done = subprocess.run([sys.executable, HERE / "driver.py", "loss_only", program, out],
                          capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done 3\n")
    assert json.loads(out.read_text())["findings"][0]["op"] == "loss"


def test_driver_refuses_an_unknown_baseline(tmp_path):
    command = [sys.executable, HERE / "driver.py", "crystal_ball", "x.py", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "dispatch_mode" in done.stderr


def test_the_suite_runs_under_a_baseline(tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, HERE.parent / "run", "--baseline", "loss_only", "--only", "p01,q04"]
    subprocess.run([*command, "--cache", tmp_path, "--out", out], check=True, timeout=300)
    runs = json.loads(out.read_text())["runs"]
    assert [len(runs[name]["findings"]) for name in ("p01", "q04")] == [1, 0]
    for run in runs.values():
        assert (run["exit_status"], run["same_output"], run["problems"]) == (0, True, [])


def test_the_suite_refuses_an_unknown_baseline():
    done = subprocess.run([sys.executable, HERE.parent / "run", "--baseline", "crystal_ball"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "loss_only" in done.stderr
