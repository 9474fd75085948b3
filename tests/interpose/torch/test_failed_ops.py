"""An operator that will not take a NaN throws: the program goes on as it would have; numsan says whose it was."""
import pytest

import run_numsan

SAMPLING = """
import sys, torch
torch.manual_seed(0)
policy = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for step in range(5):
    temperature = 0.0 if step == 3 and "bad" in sys.argv else 1.0
    logits = policy(torch.randn(2, 4))
    scaled = (logits - logits) / temperature  # BUG
    action = torch.multinomial(torch.softmax(scaled, -1), 1)
    loss = logits.gather(1, action).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, loss.item())
"""

# What an op will not take, and the call of it: with a kernel of the hook's own, and by the fallback.
REFUSED = {
    "aten::_linalg_svd": "torch.linalg.svd(x)",
    "aten::bernoulli": "torch.bernoulli(x)",
    "aten::binary_cross_entropy": "torch.nn.functional.binary_cross_entropy(x, torch.zeros(2, 2))",
    "aten::multinomial": "torch.multinomial(x, 1)",
}

CAUGHT = """
import torch
def attempt(x):
    try:
        CALL
    except RuntimeError as error:
        print(type(error).__name__, error)
x = torch.full((2, 2), VALUE).log()  # BUG
attempt(x)
for wrong in (torch.ones(2, 3), torch.ones(3)):
    try:
        torch.mm(torch.ones(2, 2) / x.numel(), wrong.t())
    except RuntimeError as error:
        print(error)
"""


def watched_and_plain(tmp_path, text, args=(), fork=True, clean=False):
    program = tmp_path / "program.py"
    program.write_text(text)
    plain = run_numsan.run_forked(program, args=args, cwd=tmp_path)
    if fork:
        watched = run_numsan.run_watched_fork(program, args=args, cwd=tmp_path, clean=clean)
    else:
        watched = run_numsan.run(program, args=args, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout), watched.describe()
    assert watched.stderr.startswith(plain.stderr), watched.describe()  # the traceback, if there is one
    return program, watched


def test_sampling_from_nan_names_the_division(warm, tmp_path):
    program, watched = watched_and_plain(tmp_path, SAMPLING, ["bad"], fork=False)
    assert watched.returncode == 1 and "probability tensor contains" in watched.stderr, watched.describe()
    assert len(watched.findings) == 1, watched.describe()
    first = watched.findings[0]
    assert (first["op"], first["step"], first["severity"]) == ("aten::div", 3, "warning"), watched.describe()
    assert first["location"]["line"] == run_numsan.marked_line(program), watched.describe()
    assert first["escape"]["into"] == "host", watched.describe()
    assert "`aten::multinomial` read it and failed" in first["evidence"], watched.describe()


def test_sampling_from_probabilities_is_silent(warm, tmp_path):
    _, watched = watched_and_plain(tmp_path, SAMPLING, clean=True)
    assert watched.returncode == 0 and watched.stderr == "" and not watched.findings, watched.describe()


@pytest.mark.parametrize("op", REFUSED)
def test_program_that_goes_on(op, warm, tmp_path):
    text = CAUGHT.replace("CALL", REFUSED[op])
    program, watched = watched_and_plain(tmp_path, text.replace("VALUE", "-1.0"))
    assert watched.returncode == 0, watched.describe()
    assert [finding["op"] for finding in watched.findings] == ["aten::log"], watched.describe()
    assert watched.findings[0]["location"]["line"] == run_numsan.marked_line(program), watched.describe()
    assert f"`{op}` read it and failed" in watched.findings[0]["evidence"], watched.describe()


@pytest.mark.parametrize("op", REFUSED)
def test_ops_that_fail_on_healthy_values_say_nothing(op, warm, tmp_path):
    text = CAUGHT.replace("CALL", REFUSED[op] + "; torch.mm(x, torch.ones(3, 3))")
    _, watched = watched_and_plain(tmp_path, text.replace("VALUE", "1.5"), clean=True)
    assert watched.stderr == "" and not watched.findings, watched.describe()
    assert watched.report["verdict"] == "clean", watched.describe()
