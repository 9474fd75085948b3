"""break=1 over trainings, evaluations, workers, notebooks and other debuggers: where each stops, what `_numsan` has
there, that the program goes on as without, and that it ends as plain Python does."""
import re
import signal
import subprocess

import pytest
import run_numsan
from debugged import PROGRAMS, PROMPT, Session, line_of, on_terminal, on_terminal_without_numsan
from nightly import in_ci
from notebook_kernel import Kernel

pytestmark = pytest.mark.usefixtures("warm")

# Program -> (function, code of the finding, what is asked at the prompt and what the answer matches)
STOPS = {
    "log_of_negative.py": ("forward", "NS101", [
        ("_numsan.inputs[0] is rate", "True"), ("bool((_numsan.inputs[0] < 0).all())", "True"),
        ("_numsan.outputs[0].isnan().sum()", r"tensor\(4\)"), ("_numsan.finding['step']", "2"),
        ("_numsan.finding['module']", "head"),
        ("[step for step, _ in _numsan.history('head.rate.weight')]", r"\[0, 1, 2\]|\[0, 1\]"),
        ("_numsan.health()", r"head\.rate\.weight +parameter +\(1, 2\) +float32"),
        ("_numsan.try_fix()", r"reproduced: [^\0]*help: bound the operand from below: [^\0]*    tried: finite; "),
        ("self.rate.weight.grad.isfinite().all()", r"tensor\(True\)")]),
    "distance_at_zero.py": ("train", "NS102", [
        ("_numsan.finding['forward']['location']['function']", "distance"), ("_numsan.finding['phase']", "backward"),
        ("_numsan.outputs[0].isinf().any()", r"tensor\(True\)"), ("step", "2"),
        ("_numsan.try_fix()", r"help: [^\0]*    tried: finite; [^\0]*gradient finite"),
        ("_numsan.health()", r"model\.weight +parameter +\(3, 2\) +float32 +\S+ +\S+ +0 +0\s")]),
    "huge_learning_rate.py": ("train", "NS104", [
        ("_numsan.finding['phase']", "optimizer"), ("step", "2"),
        ("_numsan.outputs[0].isinf().any()", r"tensor\(True\)"),
        ("bool(_numsan.inputs[0].isfinite().all())", "True"),
        ("sum(most < 10 for _, most in _numsan.history('model.weight') if most) > 0", "True")]),
    "skipped_batches.py": ("loss_of", "NS101", [
        ("_numsan.inputs[0].max() < 0", r"tensor\(True\)"), ("x.shape", r"torch\.Size\(\[4, 2\]\)")]),
    "evaluation.py": ("recall", "NS103", [
        ("_numsan.inputs[1].tolist().count(0)", "1"), ("torch.is_grad_enabled()", "False"),
        ("_numsan.outputs[0].isnan().sum()", r"tensor\(1\)"), ("hits.dtype", r"torch\.bool")]),
}


def steps(text):
    """What the program says; nothing that is typed ends the line of a prompt."""
    lines = [re.sub(r"^(?:\(Pdb\) |ipdb> )+", "", line) for line in text.splitlines()]
    return [line for line in lines if line.startswith(("step ", "the end"))]


@pytest.fixture
def started():
    """Makes sessions of processes on terminals, which end with the test."""
    made = []

    def session(child, prompt=PROMPT):
        made.append(Session(child, prompt))
        return made[-1]

    yield session
    for one in made:
        one.child.close(force=True)


@pytest.mark.parametrize("program", in_ci(STOPS, "log_of_negative.py", "evaluation.py"))
def test_it_stops_at_the_line_and_goes_on_as_without(started, tmp_path, program):
    function, code, questions = STOPS[program]
    plain = run_numsan.run_forked(PROGRAMS / program, cwd=tmp_path)
    assert plain.returncode == 0 and steps(plain.stdout)[-1] == "the end", plain.describe()
    report = tmp_path / "report.json"
    run = started(on_terminal([run_numsan.PYTHON, PROGRAMS / program], tmp_path, options={"report": report}))
    text = run.stops(program, "# BUG", function)
    # An update is a parameter at once: its finding is known, and shown once.
    assert len(re.findall(rf"(?:stopped|error)\[{code}\]: first", text)) == 1, text
    for question, answer in questions:
        said = run.ask(f"p {question}")
        assert re.search(rf"(?m)^\s*(p .*\n)?.*{answer}", said), (question, said)
    if program == "evaluation.py":
        run.go_on()
        run.stops(program, "# INFERENCE", "confidence")
        assert "True" in run.ask("p torch.is_inference_mode_enabled() and _numsan.inputs[0].eq(0).all()")
    run.go_on()
    text, status = run.ends()
    assert (status, steps(run.printed())) == (0, steps(plain.stdout)), run.printed()
    found = [finding["code"] for finding in run_numsan.read_report(report)["findings"]]
    assert found == [] if program == "evaluation.py" else code in found, found


@pytest.mark.xdist_group("break")
@pytest.mark.parametrize("program", [name for name in STOPS if name != "evaluation.py"])
def test_without_a_terminal_it_is_raised_and_can_be_caught(tmp_path, program):
    function, code, _ = STOPS[program]
    done = run_numsan.run_watched_fork(PROGRAMS / program, options={"break": 1}, cwd=tmp_path)
    raised = "skipped_batches.py" != program
    assert done.returncode == (1 if raised else 0), done.describe()
    assert [finding["code"] for finding in done.findings][:1] == [code], done.describe()
    if raised:
        assert f"NumericalError: {code}: " in done.stderr and "the end" not in done.stdout, done.describe()
        return
    plain = steps(run_numsan.run_forked(PROGRAMS / program, cwd=tmp_path).stdout)
    assert plain[2] == "step 2 loss nan", plain
    assert steps(done.stdout) == [*plain[:2], "step 2 left out: NumericalError", *plain[3:]], done.describe()


def test_a_value_that_is_not_finite_in_an_evaluation_is_no_reason_to_raise(tmp_path):
    """It got into nothing that matters."""
    plain = run_numsan.run_forked(PROGRAMS / "evaluation.py", cwd=tmp_path)
    done = run_numsan.run_watched_fork(PROGRAMS / "evaluation.py", options={"break": 1}, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.describe()


def with_breakpoint(program, folder):
    """The program with a call of breakpoint() before its marked line, the first time."""
    lines = (PROGRAMS / program).read_text().splitlines(keepends=True)
    at = line_of(program, "# BUG") - 1
    indent = re.match(" *", lines[at])[0]
    path = folder / program
    call = f'{indent}if next(globals().setdefault("stops", iter([1])), 0): breakpoint()\n'
    path.write_text("".join([*lines[:at], call, *lines[at:]]))
    return path


def typed_quit(run):
    run.go_on("quit")


def interrupted_at_the_prompt(run):
    run.interrupt()
    run.go_on("quit")


def interrupted_while_it_goes_on(run):
    run.go_on()
    run.child.expect("waiting")
    run.child.sendintr()
    run.child.expect(PROMPT)
    run.go_on("quit")


def end_of_input(run):
    run.child.sendeof()


@pytest.mark.parametrize("program, typed", [
    ("log_of_negative.py", typed_quit), pytest.param("log_of_negative.py", end_of_input, marks=pytest.mark.nightly),
    pytest.param("skipped_batches.py", typed_quit, marks=pytest.mark.nightly),
    ("waits.py", interrupted_at_the_prompt), ("waits.py", interrupted_while_it_goes_on)])
def test_it_ends_as_with_breakpoint(started, tmp_path, program, typed):
    """The exit status, the exception and what is printed on the way."""
    ended = []
    for child in (on_terminal([run_numsan.PYTHON, PROGRAMS / program], tmp_path),
                  on_terminal_without_numsan([run_numsan.PYTHON, with_breakpoint(program, tmp_path)], tmp_path)):
        run = started(child)
        run.child.expect(PROMPT)
        typed(run)
        text, status = run.ends()
        ended.append((status, run.child.signalstatus, re.findall(r"(?m)^(?:bdb\.)?BdbQuit|left out: \w+", text)))
    watched, plain = ended
    assert watched == plain and (watched[2] or watched[0]), ended


def test_ctrl_c_without_a_terminal(tmp_path):
    statuses = []
    for argv, environment in (run_numsan.attached([run_numsan.PYTHON, PROGRAMS / "waits.py"],
                                                  options={"break": 1, "report": "none"}),
                              ([run_numsan.PYTHON, str(PROGRAMS / "waits.py")], run_numsan.plain_environment())):
        child = subprocess.Popen(argv, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert child.stdout.readline() == "waiting\n"
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
        assert said.rstrip().endswith("KeyboardInterrupt"), said
        statuses.append(child.returncode)
    assert statuses == [-signal.SIGINT, -signal.SIGINT]


def test_a_worker_of_a_program_on_a_terminal_asks_nobody(started, tmp_path):
    """Its input is nobody's; the program itself stops where the value gets into the loss."""
    plain = run_numsan.run_plain(PROGRAMS / "worker.py", cwd=tmp_path)
    run = started(on_terminal([run_numsan.PYTHON, PROGRAMS / "worker.py"], tmp_path))
    run.child.expect(PROMPT)
    text = run.child.before
    assert "stopped[" not in text and text.count("error[NS103]") == 1, text
    assert "break=1: stopped where it got into what matters" in text, text
    assert f"--> {PROGRAMS / 'worker.py'}:{line_of('worker.py', '# BUG')}" in text or \
        f"worker.py:{line_of('worker.py', '# BUG')} in __getitem__" in text, text
    assert re.search(rf"> \S*worker.py\({line_of('worker.py', '# LOSS')}\)<module>\(\)", text), text
    assert "inf" in run.ask("p batch")
    assert str(line_of("worker.py", "# BUG")) in run.ask("p _numsan.finding['location']['line']")
    run.go_on()
    text, status = run.ends()
    assert (status, steps(run.printed())) == (plain.returncode, steps(plain.stdout)), run.printed()


NOTEBOOK = """import torch
def growth(x):
    return torch.log(x)  # BUG
"""
TRAINING = """model = torch.nn.Linear(2, 1)
for step in range(3):
    loss = growth(model(torch.ones(4, 2)) - (100 if step == 1 else -100)).mean()
    loss.backward()  # RAISES
"""
CAUGHT = """import numsan
try:
    torch.log(-model(torch.ones(4, 2)).square()).sum().backward()
except numsan.NumericalError as error:
    print(error.finding["location"]["cell"], error.inputs[0].shape, error.outputs[0].isnan().all())
"""


def test_in_a_notebook_it_is_raised_in_the_cell(tmp_path):
    kernel = Kernel(tmp_path, {"break": 1, "report": "none"})
    try:
        assert kernel.run(NOTEBOOK) == ("ok", "")
        defined = kernel.number
        status, text = kernel.run(TRAINING)
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
        assert status == "error" and "NumericalError: NS101: " in text, text
        assert f"--> cell In[{defined}]:3 in growth" in text and "return torch.log(x)" in text, text
        assert re.search(r"-+> 4 +loss.backward\(\)  # RAISES", text), text
        assert kernel.run("step") == ("ok", "1"), "the kernel and its variables are there"
        status, text = kernel.run(CAUGHT)
        assert status == "ok" and text.startswith(f"{kernel.number} torch.Size([4, 1]) tensor(True)\n"), text
    finally:
        kernel.close()


def test_in_ipython_on_a_terminal(started, tmp_path):
    command = [run_numsan.PYTHON, "-m", "IPython", "--simple-prompt", "--no-banner", "--no-confirm-exit",
               "--colors=NoColor"]
    run = started(on_terminal(command, tmp_path, env={"IPYTHONDIR": str(tmp_path / "ipython")}))
    cell = r"In \[{}\]: "

    def enter(number, text, until):
        run.child.expect(cell.format(number))
        run.go_on(text)
        run.child.expect(until)
        return run.child.before

    enter(1, "import torch", "")
    enter(2, "def growth(x): return torch.log(x)", "")
    run.child.sendline("")
    text = enter(3, "y = growth(-torch.ones(2))", PROMPT)
    assert "stopped[NS101]" in text and re.search(r"> <ipython-input-2-\w+>\(1\)growth\(\)", text), text
    assert "tensor([-1., -1.])" in run.ask("p _numsan.inputs[0]") and "True" in run.ask("p _numsan.inputs[0] is x")
    run.go_on()
    text = enter(4, "y", r"tensor\(\[nan, nan\]\)")
    text = enter(5, "torch.sqrt(-torch.ones(2))", PROMPT)
    assert "stopped[NS101]" in text and "<module>()" in text, text
    run.go_on("quit")  # IPython ends the cell then, without a word
    text = enter(6, "'_numsan' in dir(__builtins__)", "False")
    run.child.expect(cell.format(7))
    run.go_on("exit")
    _, status = run.ends()
    assert status == 0


def test_the_debugger_of_ipython_is_named(started, tmp_path):
    """It is made of bdb, so that it is entered in the program's own frame."""
    program = "log_of_negative.py"
    plain = run_numsan.run_forked(PROGRAMS / program, cwd=tmp_path)
    run = started(on_terminal([run_numsan.PYTHON, PROGRAMS / program], tmp_path, env={
        "PYTHONBREAKPOINT": "IPython.core.debugger.set_trace", "IPYTHONDIR": str(tmp_path / "ipython")}), r"ipdb> ")
    run.child.expect(run.prompt)
    text = re.sub(r"\x1b\[[0-9;]*m", "", run.child.before)
    assert f"{program}({line_of(program, '# BUG')})forward()" in text.replace("\r", ""), text
    assert "True" in run.ask("p _numsan.inputs[0] is rate")
    run.go_on()
    text, status = run.ends()
    assert (status, steps(run.printed())) == (0, steps(plain.stdout)), run.printed()
