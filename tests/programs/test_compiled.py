"""Programs whose model torch.compile made kernels of: one finding, at the line in the model."""
import shutil

import pytest

import run_numsan

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")

PROGRAM = """
import sys, torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    def forward(self, x, shift):
        h = torch.tanh(self.first(x)) - shift
        return self.last(h.log() if "forward" in sys.argv else (h - h.detach()).sqrt() + h)
net = Net()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    bad = step == 2 and "healthy" not in sys.argv
    if "forward" in sys.argv:
        loss = compiled(torch.randn(8, 4), torch.tensor(5.0 if bad else -5.0)).square().mean()
    else:
        loss = (compiled if bad else net)(torch.randn(8, 4), torch.tensor(5.0)).square().mean()
    if bad or "forward" in sys.argv:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(all(bool(p.isfinite().all()) for p in net.parameters()))
"""


# As outside of tests: this processor's vector instructions.
VECTORS = {"TORCHINDUCTOR_VEC_ISA_OK": ""}


def watched_run(tmp_path, *args, env=None, options=None):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    watched = run_numsan.run(program, args=args, cwd=tmp_path, timeout=400, env=env, options=options)
    assert watched.returncode == 0, watched.describe()
    run_numsan.validate(watched.report)
    return watched


@pytest.mark.parametrize("environment", [{}, pytest.param(VECTORS, marks=pytest.mark.nightly)],
                         ids=["plain", "vectors"])
def test_a_region_that_makes_nan_is_one_finding(environment, warm, tmp_path):
    watched = watched_run(tmp_path, "forward", env=environment)
    assert watched.stdout == "False\n" and len(watched.findings) == 1, watched.describe()
    found = watched.findings[0]
    assert (found["op"], found["severity"], found["step"]) == ("aten::log", "error", 2), watched.describe()
    assert found["phase"] == "forward" and found["escape"]["into"] == "loss", watched.describe()
    assert "h.log()" in found["location"]["code"] and found["category"]["id"] == "N2", watched.describe()


def test_a_region_that_is_not_looked_into_is_named_as_one(warm, tmp_path):
    watched = watched_run(tmp_path, "forward", options={"regions": "0"})
    assert watched.stdout == "False\n" and len(watched.findings) == 1, watched.describe()
    found = watched.findings[0]
    assert (found["op"], found["severity"], found["step"]) == ("compiled region", "error", 2), watched.describe()
    assert found["location"]["file"].endswith("program.py"), watched.describe()
    assert found["category"]["id"] not in ("N1", "N6") or found["category"]["confidence"] < 0.5, watched.describe()
    assert any("TORCHDYNAMO_DISABLE=1" in line for line in found["help"]), watched.describe()


@pytest.mark.nightly
def test_a_derivative_inside_a_region_is_one_finding(warm, tmp_path):
    watched = watched_run(tmp_path, "backward", env=VECTORS)
    assert watched.stdout == "False\n" and len(watched.findings) == 1, watched.describe()
    found = watched.findings[0]
    assert (found["forward"]["op"], found["phase"], found["step"]) == ("aten::sqrt", "backward", 0), watched.describe()
    assert "sqrt()" in found["location"]["code"], watched.describe()


def test_its_healthy_twin_is_silent(warm, tmp_path):
    watched = watched_run(tmp_path, "forward", "healthy")
    assert watched.stdout == "True\n" and "numsan:" not in watched.stderr and not watched.findings, watched.describe()
