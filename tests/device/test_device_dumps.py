"""`dump` and `break` on a device whose work is late: each op is waited for, so that its arguments are still there."""
import json
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="dumps are read back with torch, which this interpreter has not")
import run_numsan  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "dumps"))
import dumped  # noqa: E402

pytestmark = pytest.mark.xdist_group("device")  # one worker has the processes of which they are forks
PROGRAMS = {
    "forward": ("aten::log", """
x = torch.tensor([1.0, -2.0, 3.0]).to(GPU)
y = torch.log(x)
x.fill_(5.0)
print(y.sum().item())
"""),
    "in_place": ("aten::div_", """
x = torch.tensor([1.0, 0.0, 3.0, 4.0]).to(GPU)
x[::2].mul_(2)
x.div_(torch.tensor([1.0, 0.0, 2.0, 1.0]).to(GPU))
x.add_(1)
print(x.sum().item())
"""),
    "strided": ("aten::reciprocal", """
x = torch.arange(12.0).reshape(3, 4).to(GPU)
print(torch.reciprocal(x.t()[:2]).sum().item())
"""),
    "backward": ("aten::div", """
x = torch.tensor([0.0, 4.0]).to(GPU).requires_grad_()
y = x * 1
torch.sqrt(y).sum().backward()
print(x.grad.sum().item())
"""),
    "random": ("aten::native_dropout", """
x = torch.full((64,), 3e38).to(GPU).requires_grad_()
y = torch.nn.functional.dropout(x, 0.5)
print(y.sum().item())
"""),
    "overflow": ("aten::mul", """
x = torch.tensor([1.0, 300.0], dtype=torch.float16).to(GPU)
for _ in range(3):
    x = x * 60
print(x.float().sum().item())
"""),
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Where the programs that run as forks of one process, and so with its options, leave their dumps."""
    return tmp_path_factory.mktemp("dumps")


def only_dump(report):
    paths = [one["dump"] for one in report["findings"]]
    assert len(paths) == 1 and paths[0] is not None, json.dumps(report["findings"], indent=1)[:3000]
    return dumped.Dump(pathlib.Path(paths[0]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_operator_runs_again_as_it_ran(name, watched, dumps):
    op, text = PROGRAMS[name]
    done = watched(text, options={"dump": dumps})
    assert "no dump" not in done.stderr, done.stderr
    made = only_dump(done.report)
    assert made.op["name"] == op and done.report["run"]["tiers"]["cuda"] == "full", done.report["run"]
    if name == "in_place":  # before it is run again, which writes it
        assert made.arguments()["self"].tolist() == [2.0, 0.0, 6.0, 4.0]
    if name == "backward":
        assert made.about["forward"]["name"] == "aten::sqrt", made.about["forward"]
    assert made.about["device"] == "fakegpu:0" and made.about["rng"] == {}, made.about
    if name == "random":
        return  # the state of the device's generator is not in it
    wrote, again = made.results(), made.run_again()
    assert len(wrote) == len(again) > 0
    for one, other in zip(wrote, again):
        assert dumped.same_bits(one, other), (one, other)
    assert any(not torch.isfinite(one).all() for one in wrote), wrote
    assert {item["device"] for item in made.op["results"]} == {"fakegpu:0"}, made.op["results"]


def test_replay_without_the_device(watched, dumps):
    report = watched(PROGRAMS["in_place"][1], options={"dump": dumps}).report
    made = only_dump(report)
    done = subprocess.run([run_numsan.COMMAND, "replay", report["findings"][0]["dump"]], capture_output=True,
                          text=True, timeout=200,
                          env=run_numsan.plain_environment({"NUMSAN_PYTHON": run_numsan.PYTHON}))
    assert done.returncode == 0 and "aten::div_" in done.stdout, done.stdout + done.stderr
    assert "on fakegpu:0" in done.stdout, done.stdout
    assert "on cpu again" in done.stdout and "none of KERN, PREC, RACE and HW" in done.stdout, done.stdout


TRAINING = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 1)).to(GPU)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x = torch.randn(32, 6).to(GPU)
for step in range(6):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
for p in model.parameters(): print(p.detach().cpu().view(torch.int32).tolist())
print(torch.get_rng_state().sum().item(), unequal_bytes())
"""


@pytest.mark.parametrize("options", [{"dump": "dumps"}, {"break": 1}], ids=["dump", "break"])
def test_a_healthy_training_is_the_same_and_silent(options, watched_process):
    assert watched_process(TRAINING, options=options).stderr == ""


def test_threads_each_keep_their_own(watched_process, tmp_path):
    """Births of several threads at once: each thread waits for its own ops while others judge them."""
    watched_process("""
torch.ones(1, device=GPU).sum().item()  # the context is made
LEAVES_ITS_DOMAIN = [
    lambda x: torch.log(-x),
    lambda x: torch.sqrt(-x),
    lambda x: torch.acos(x * 9),
    lambda x: torch.log2(-x),
]
def work(bad):
    x = torch.full((8,), 2.0, device=GPU)
    for _ in range(10): x = x * 1.001
    assert bad(x).sum().item() != 0
threads = [threading.Thread(target=work, args=(bad,)) for bad in LEAVES_ITS_DOMAIN]
for t in threads: t.start()
for t in threads: t.join()
""", options={"dump": tmp_path / "dumps", "dump_findings": 4, "max_findings": 100})
    report = run_numsan.read_report(tmp_path / "report.json")
    dumps = [one["dump"] for one in report["findings"]]
    assert len(dumps) == 4 and all(dumps), report["findings"]
    assert sorted(dumped.Dump(pathlib.Path(path)).op["name"] for path in dumps) == sorted(
        one["op"] for one in report["findings"])


def test_a_capture_is_left_alone(watched, dumps):
    done = watched("""
x = torch.full((8,), -1.0, device=GPU)
D.synchronize()
with Graph() as graph:
    y = (x * 2).mul_(3).log()
graph.replay(3)
print(y.sum().item())
""", options={"dump": dumps})
    assert done.stderr.count("[NS101]") == 1 and "no dump of finding F1" in done.stderr, done.stderr
