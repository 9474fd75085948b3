"""break=1: where a program stops, what its user sees there, and what it raises where nobody is there."""
import re
import shlex
import shutil
import subprocess
import time

import pexpect
import pytest

import run_numsan
from debugged import PROGRAMS, PROMPT, Session, line_of, on_terminal

pytestmark = pytest.mark.usefixtures("warm")


@pytest.fixture
def session(tmp_path):
    made = []

    def start(program, *args, **options):
        made.append(Session(on_terminal([run_numsan.PYTHON, PROGRAMS / program, *args], tmp_path, **options)))
        return made[-1]

    yield start
    for one in made:
        one.child.close(force=True)


def test_stops_at_the_line_of_each_kind_of_bad_value(session):
    run = session("stops.py")
    text = run.stops("stops.py", "# PLAIN")
    assert "stopped[NS103]" in text and "it is not known yet" in text and "escaped:" not in text, text
    assert "tensor([inf, inf])" in run.ask("p _numsan.outputs[0]")
    assert "True" in run.ask("p _numsan.inputs[0] is x")
    assert "NameError" in run.ask("p y")  # the line has not ended
    assert "NS103" in run.ask("p _numsan.finding['code']")
    assert "MulBackward0" in run.ask("p (x * 2).requires_grad_() * 3")  # autograd records, and nothing stops
    assert "tensor([inf, inf])" in run.ask("p x / 0")
    run.go_on("next")
    run.child.expect(PROMPT)
    assert re.search(r"return z", run.child.before), run.child.before
    assert "tensor([inf, inf])" in run.ask("p y")
    assert "tensor([nan, nan])" in run.ask("p torch.log(-x)")  # not the program's at this prompt, either
    assert "LookupError: the program has gone on since" in run.ask("p _numsan.try_fix()")

    run.go_on()
    run.stops("stops.py", "# MODULE")
    assert "True" in run.ask("p 'layer' in self._modules")
    health = run.ask("p _numsan.health()")
    assert re.search(r"model\.layer\.weight +parameter +\(2, 2\) +float32 +0\.\d+ +0\.\d+ +0 +0", health), health
    assert re.search(r"model\.seen +buffer +\(2,\) +float32 +1 +1 +1 +0", health), health
    assert "[(0, " in run.ask("p _numsan.history('model.layer.weight')")
    assert "LookupError" in run.ask("p _numsan.history('nothing')")

    run.go_on()
    run.stops("stops.py", "# IN-PLACE")
    assert "tensor([1., 2., 4.])" in run.ask("p _numsan.inputs[0]")
    assert "True" in run.ask("p _numsan.outputs[0] is values")

    run.go_on()
    text = run.stops("stops.py", "# BACKWARD")
    assert f"stops.py:{line_of('stops.py', '# ROOT')} in backward" in text, text
    assert "inf" in run.ask("p _numsan.outputs[0]")

    run.go_on()  # past the second call of plain()
    run.stops("stops.py", "# OPTIMIZER")
    assert "weight" in run.ask("p sorted(locals())")

    run.go_on()
    run.stops("stops.py", "# LISTS")
    assert "[1.0, 2.0, 3.0]" in run.ask("p [float(one[0]) for one in _numsan.inputs[0]]")
    assert "[True, True, True]" in run.ask("p [a is b for a, b in zip(_numsan.inputs[0], some)]")
    assert "[1, 2, 3]" in run.ask("p [t.numel() for t in _numsan.outputs[0]]"), "each in its own place"
    run.go_on()
    text, status = run.ends()
    assert "the end" in text and status == 0, text


def test_again_quit_and_interrupts_are_those_of_pdb(session):
    run = session("stops.py")
    run.stops("stops.py", "# PLAIN")
    run.interrupt()
    run.ask("_numsan.again()")
    for mark in ("# MODULE", "# IN-PLACE", "# BACKWARD", "# PLAIN"):
        run.go_on()
        run.stops("stops.py", mark)
    run.go_on("quit")
    text, status = run.ends()
    assert "bdb.BdbQuit" in text and "the end" not in text and status == 1, text
    assert f'line {line_of("stops.py", "# PLAIN")}, in plain' in text and "<numsan>" not in text, text


def test_a_debugger_that_is_named_is_called_at_the_line(tmp_path):
    env = {"PYTHONBREAKPOINT": "named.stop", "PYTHONPATH": str(PROGRAMS)}
    result = run_numsan.run(PROGRAMS / "stops.py", options={"break": 1}, env=env, cwd=tmp_path)
    assert result.returncode == 0, result.describe()
    said = [line for line in result.stdout.splitlines() if line.startswith("named:")]
    assert said[0] == f"named: plain {line_of('stops.py', '# PLAIN')} ['x'] NS103 [(2,)]", result.describe()
    assert [int(line.split()[2]) for line in said] == [
        line_of("stops.py", mark) for mark in ("# PLAIN", "# MODULE", "# IN-PLACE", "# BACKWARD", "# OPTIMIZER",
                                "# LISTS")]


@pytest.mark.xdist_group("break")
def test_without_a_terminal_the_operator_raises_what_was_found(tmp_path):
    caught = run_numsan.run_watched_fork(PROGRAMS / "escapes.py", options={"break": 1}, args=["catch"], cwd=tmp_path)
    line = line_of("escapes.py", "# BUG")
    assert caught.stdout.splitlines() == [f"True NS101 loss {line}", "(3, 1) True True"], caught.describe()
    result = run_numsan.run_watched_fork(PROGRAMS / "escapes.py", options={"break": 1}, cwd=tmp_path)
    assert result.returncode == 1, result.describe()
    last = result.stderr[result.stderr.index("_numsan.NumericalError: "):]
    assert re.match(rf"_numsan.NumericalError: NS101: .*\n  --> \S*escapes.py:{line} in loss_of\n"
                    r"      growth = torch.log\(model\(x\) - 100\).*\nit got into the loss in step 0\n", last), last
    assert "loss.backward()" in result.stderr and len(result.findings) == 1, result.describe()


@pytest.mark.xdist_group("break")
def test_healthy_programs_compute_the_same_and_are_met_with_silence(tmp_path):
    plain = run_numsan.run_forked(PROGRAMS / "healthy.py", cwd=tmp_path)
    watched = run_numsan.run_watched_fork(PROGRAMS / "healthy.py", options={"break": 1}, cwd=tmp_path)
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, plain.stdout, ""), watched.describe()


def test_what_is_computed_at_the_prompt_is_not_the_programs(session, tmp_path):
    report = tmp_path / "report.json"
    run = session("healthy.py", options={"report": report})
    run.stops("healthy.py", "# MASKED")
    run.ask("p torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], 0.1).step()")
    run.ask("p (torch.ones(2, requires_grad=True) / 0).sum().backward()")
    run.go_on()
    text, status = run.ends()  # what overflows in the backward pass is the scaler's
    steps = int(re.search(r"True steps: (\d+)", text)[1])
    report = run_numsan.read_report(report)
    assert status == 0 and steps < 8 and report["run"]["steps"] == steps and not report["findings"], text


def test_what_a_worker_made_is_raised_where_it_gets_into_the_loss(tmp_path):
    result = run_numsan.run(PROGRAMS / "worker.py", options={"break": 1}, cwd=tmp_path)
    assert result.returncode == 1 and "the end" not in result.stdout, result.describe()
    assert "_numsan.NumericalError" in result.stderr, result.describe()
    raised = result.stderr.rpartition("NumericalError")[2]
    assert f"worker.py:{line_of('worker.py', '# BUG')}" in raised, result.describe()


RANKS = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--rdzv-backend", "c10d",
         "--rdzv-endpoint", "localhost:0"]


def test_the_first_rank_stops_and_the_others_wait(tmp_path):
    child = on_terminal([run_numsan.PYTHON, *RANKS, PROGRAMS / "ranks.py"], tmp_path)
    try:
        child.expect(PROMPT)
        assert "the other ranks wait for this one in their next collective, at most 90 s" in child.before, child.before
        assert re.search(rf"ranks.py\({line_of('ranks.py', '# BUG')}\)", child.before), child.before
        child.sendline("_numsan.outputs[0].fill_(1.0); None")
        child.expect(PROMPT)
        child.sendline("continue")
        child.expect(pexpect.EOF)
        assert sorted(re.findall(r"rank \d at the end", child.before)) == ["rank 0 at the end", "rank 1 at the end"]
    finally:
        child.close(force=True)
    assert child.exitstatus == 0


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux(tmp_path):
    argv, environment = run_numsan.attached([run_numsan.PYTHON, PROGRAMS / "escapes.py"],
                                            options={"break": 1, "report": "none"}, env={"PYTHONBREAKPOINT": ""})
    script = tmp_path / "run.sh"
    lines = [f"export {key}={shlex.quote(value)}" for key, value in environment.items() if key.isidentifier()]
    script.write_text("\n".join([*lines, shlex.join(argv), "echo status $?", "sleep 60"]))
    environment = {key: value for key, value in environment.items() if key not in ("LD_PRELOAD", "TMUX")}
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]

    def shown(pattern):
        end = time.monotonic() + 90
        while time.monotonic() < end:
            text = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, env=environment).stdout
            if re.search(pattern, text):
                return text
            time.sleep(0.1)
        raise AssertionError(f"{pattern!r} never appeared:\n{text}")

    start = [*tmux, "new-session", "-d", "-x", "160", "-y", "50", "sh", str(script)]
    subprocess.run(start, check=True, env=environment)
    try:
        assert f"escapes.py({line_of('escapes.py', '# BUG')})loss_of()" in shown(r"\(Pdb\)")
        subprocess.run([*tmux, "send-keys", "p _numsan.inputs[0].shape", "Enter"], check=True, env=environment)
        shown(r"torch\.Size\(\[3, 1\]\)")
        subprocess.run([*tmux, "send-keys", "quit", "Enter"], check=True, env=environment)
        assert "bdb.BdbQuit" in shown("status 1")
    finally:
        subprocess.run([*tmux, "kill-server"], env=environment)
