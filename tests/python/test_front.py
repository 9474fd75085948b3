"""`import numsan` in a program: what it says and asks where numsan is attached, and that it does nothing elsewhere."""
import pytest
import run_numsan

PACKAGE = run_numsan.REPO / "python"
HEAD = f"""
import sys
sys.path.insert(0, {str(PACKAGE)!r})
import numsan, torch
"""
ATTACHED = HEAD + """
import threading
assert numsan.attached() and numsan.check() == 0 and numsan.findings() == []

@numsan.ignore()
def meant(x):
    with numsan.ignore():
        pass
    return float(x.log())  # read, so it would be a finding

meant(-torch.ones(1))
assert numsan.check(decide=True) == 0, numsan.findings()

def elsewhere():
    with numsan.ignore():
        inside.set()
        leave.wait(60)

inside, leave = threading.Event(), threading.Event()
thread = threading.Thread(target=elsewhere)
thread.start()
inside.wait(60)
x = torch.ones(1)
for i in range(4):
    float((x if i < 3 else -x).log())  # BUG
    numsan.step(loss=i)
leave.set()
thread.join()
assert numsan.check(decide=True) == 1, "another thread's block is not this one's"
found = numsan.findings()
assert (found[0]["step"], found[0]["op"]) == (3, "aten::log"), found
found[0].clear()
assert numsan.findings()[0]["code"].startswith("NS"), "a dictionary is the caller's own"

w = torch.nn.Parameter(torch.zeros(2))
w.sqrt().sum().backward()  # a gradient that nothing takes up yet
before = numsan.check()
assert numsan.check(decide=True) == before + 1, numsan.findings()
several = [threading.Thread(target=lambda: [numsan.findings() for _ in range(20)]) for _ in range(4)]
for one in several: one.start()
for one in several: one.join()
print("done")
"""
DIVERGED = HEAD + """
x = torch.full((2,), 60000.0, dtype=torch.half)
for i in range(6):
    numsan.step(loss=torch.tensor(10.0 ** (2 * i)) if %s else None)
float((x * x).float().sum())  # BUG
"""
HEALTHY = HEAD + """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for i in range(20):
    with numsan.ignore():
        weights = torch.rand(32).log()
    loss = (weights * model(torch.randn(32, 8)).squeeze(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numsan.step(loss=loss)
    assert numsan.check(decide=i % 5 == 0) == len(numsan.findings()) == 0
print([parameter.detach().numpy().tobytes().hex() for parameter in model.parameters()])
print(torch.rand(4), optimizer.state_dict()["state"][0]["step"])
"""
RAISES = """
import sys
sys.path.insert(0, {package!r})
import {first}
import {second}
import _numsan
assert numsan.NumericalError is _numsan.NumericalError and issubclass(numsan.NumericalError, RuntimeError)
w = torch.nn.Parameter(-torch.ones(2))
try:
    w.log().sum().backward()
except numsan.NumericalError as error:
    print(error.finding["code"], error.inputs[0].tolist(), str(error).startswith("NS101: "))
"""
ELSEWHERE = HEAD.replace(", torch", "") + """
assert not numsan.attached() and numsan.check(decide=True) == 0 and numsan.findings() == []
with numsan.ignore():
    numsan.step(loss=1.0)
try:
    assert (numsan.NumericalError.finding, numsan.NumericalError.inputs) == ({}, ())
except numsan.NumericalError:
    pass
print("done")
"""


def written(tmp_path, text):
    program = tmp_path / "program.py"
    program.write_text(text)
    return program


def test_attached(warm, tmp_path):
    done = run_numsan.run_watched_fork(written(tmp_path, ATTACHED), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.describe()
    assert "not attached" not in done.stderr, done.describe()


def test_a_loss_that_is_told_shows_divergence(warm, tmp_path):
    told = [run_numsan.run_watched_fork(written(tmp_path, DIVERGED % tells), cwd=tmp_path) for tells in (True, False)]
    said = [any("the loss had become" in fact for fact in done.findings[0]["evidence"]) for done in told]
    assert said == [True, False], told[0].describe()


def test_a_healthy_program_computes_the_same(warm, tmp_path):
    """And one that both calls step() and has an optimizer counts each step once."""
    program = written(tmp_path, HEALTHY)
    plain = run_numsan.run_forked(program, cwd=tmp_path)
    watched = run_numsan.run_watched_fork(program, cwd=tmp_path, clean=True)
    assert (watched.returncode, watched.stdout) == (0, plain.stdout), watched.describe()
    assert watched.findings == [] and watched.stderr == "", watched.describe()
    assert watched.report["run"]["steps"] == 20, watched.describe()


@pytest.mark.parametrize("first, second", [("numsan", "torch"), ("torch", "numsan")])
def test_what_break_raises_is_the_class_of_the_package(warm, tmp_path, first, second):
    """Whichever was imported first: `except` takes no other class of that name. In processes of their own, as a fork of
    a process that has torch has only one order."""
    program = written(tmp_path, RAISES.format(package=str(PACKAGE), first=first, second=second))
    done = run_numsan.run(program, options={"break": 1}, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "NS101 [-1.0, -1.0] True\n"), done.describe()


def test_not_attached(tmp_path):
    """Nothing happens, nothing is loaded, and it is said once. torch is not needed for that."""
    done = run_numsan.run_plain(written(tmp_path, ELSEWHERE), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.describe()
    assert done.stderr == ("numsan: not attached, so calls of the module numsan do nothing: start the program with "
                           "`numsan run -- python ...`\n")


def test_before_torch(build, tmp_path):
    """A program that has not imported torch yet will be watched: it is told nothing."""
    done = run_numsan.run(written(tmp_path, ELSEWHERE), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done.describe()
