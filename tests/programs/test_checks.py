"""Programs that check their own values: told of where they ended over one, silent where they trained on."""
import os

import pytest

import run_numsan

PROGRAM = """
import sys, torch
torch.manual_seed(0)
policy = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
def train():
    for step in range(5):
        temperature = 0.0 if step == 3 and "bad" in sys.argv else 1.0
        logits = policy(torch.randn(2, 4))
        scaled = (logits - logits) / temperature  # BUG
        loss = scaled.mean() + logits.mean()
        CHECK
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
train()
print("after it:", all(bool(torch.isfinite(p).all()) for p in policy.parameters()))
"""

# What the program does, and the exit status when the check fails.
ENDS = {
    "assertion": ("assert torch.isfinite(loss), 'loss'", 1),
    "count of elements": ("assert int(torch.isnan(scaled).sum()) == 0, 'scaled'", 1),
    "comparison with itself": ("assert not bool((scaled != scaled).any()), 'scaled'", 1),
    "argument check": ("torch.distributions.Categorical(logits=scaled)", 1),
    "return": ("if not torch.isfinite(loss): return", 0),
    "sys.exit": ("if torch.isnan(scaled).any().item(): sys.exit(3)", 3),
}


def watched_and_plain(tmp_path, check, args=(), fork=True, clean=False):
    """A traceback in a fork begins with the frame that runs the program, with numsan as without."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("CHECK", check))
    plain = run_numsan.run_forked(program, args=args, cwd=tmp_path, any_end=fork)
    if fork:
        watched = run_numsan.run_watched_fork(program, args=args, cwd=tmp_path, clean=clean)
    else:
        watched = run_numsan.run(program, args=args, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout), watched.describe()
    assert watched.stderr.startswith(plain.stderr), watched.describe()  # the traceback, if there is one
    run_numsan.validate(watched.report)
    return program, watched


# At night those that end as others do.
AS_OTHERS = {"comparison with itself", "count of elements", "sys.exit"}


@pytest.mark.parametrize("check", [pytest.param(check, marks=[pytest.mark.nightly] if check in AS_OTHERS else [])
                                   for check in ENDS])
def test_program_that_ended_over_its_check(check, warm, tmp_path):
    text, status = ENDS[check]
    program, watched = watched_and_plain(tmp_path, text, ["bad"], fork=check != "assertion")
    assert watched.returncode == status, watched.describe()
    assert [f["severity"] for f in watched.findings] == ["warning"], watched.describe()
    first = watched.findings[0]
    assert (first["op"], first["step"], first["escape"]["into"]) == ("aten::div", 3, "host"), watched.describe()
    assert first["location"]["line"] == run_numsan.marked_line(program), watched.describe()
    assert any(e.startswith("a check of the program read it") for e in first["evidence"]), watched.describe()


def test_program_that_skips_the_batch_and_trains_on(warm, tmp_path):
    _, watched = watched_and_plain(tmp_path, "if not torch.isfinite(loss): continue", ["bad"], clean=True)
    assert watched.returncode == 0 and watched.stderr == "" and not watched.findings, watched.describe()


def test_checks_of_healthy_values_say_nothing(warm, tmp_path):
    checks = "; ".join(text for text, _ in ENDS.values() if not text.startswith("if"))
    _, watched = watched_and_plain(tmp_path, checks, clean=True)
    assert watched.returncode == 0 and watched.stderr == "" and not watched.findings, watched.describe()


def test_healthy_program_that_fails_otherwise_says_nothing(warm, tmp_path):
    masked = "scaled.masked_fill(scaled == 0, -torch.inf).isinf().all().item()"
    check = f"assert torch.isfinite(loss); {masked} and step == 4 and 1 / 0"
    _, watched = watched_and_plain(tmp_path, check, clean=True)
    assert watched.returncode == 1 and "ZeroDivisionError" in watched.stderr, watched.describe()
    assert not watched.findings, watched.describe()


# A loop that skips a batch over an exception of its own; the batch of step 3 is bad.
CAUGHT = """
import sys, torch
torch.manual_seed(0)
class NanError(RuntimeError): pass
class Skip(Exception): pass
policy = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
def guard(value):
    if not torch.isfinite(value).all():
        raise NanError("not finite")
def is_finite(value):
    return bool(torch.isfinite(value).all())
def one_step(step):
    temperature = 0.0 if step == 3 and "bad" in sys.argv else 1.0
    logits = policy(torch.randn(2, 4))
    scaled = (logits - logits) / temperature  # BUG
    loss = scaled.mean() + logits.mean()
    CHECK
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for step in range(6):
    try:
        one_step(step)
    except (ArithmeticError, AssertionError, RuntimeError, ValueError, StopIteration, Skip):
        optimizer.zero_grad()
        continue
print("after it:", all(bool(torch.isfinite(p).all()) for p in policy.parameters()))
"""
RAISES = {
    "assertion": "assert torch.isfinite(loss).all()",
    "assertion with a message": "assert torch.isfinite(loss).all(), 'step %d' % step",
    "an error": "if torch.isnan(loss):\n        raise FloatingPointError('loss')",
    "an error of its own": "if not torch.isfinite(scaled).all(): raise NanError('scaled')",
    "a function that checks": "guard(loss)",
    "a function that answers": "if not is_finite(loss):\n        raise NanError('loss')",
    "a name between": "fine = torch.isfinite(loss).item()\n    if not fine:\n        raise NanError('loss')",
}
SKIPS = {
    "a skip": "if not torch.isfinite(loss): return",
    "a skip by exception": "if not torch.isfinite(loss): raise Skip()",
    "an end of a search": "if not torch.isfinite(loss):\n        raise StopIteration",
    "a question that raises for others": "assert loss.ndim == 0 and torch.isnan(loss) in (True, False)\n"
                                         "    if not torch.isfinite(loss): return",
}


def watched_caught(tmp_path, check, args=()):
    program = tmp_path / "program.py"
    program.write_text(CAUGHT.replace("CHECK", check))
    os.utime(program, (0, 0))  # of a fork, too, only what was there before its parent started is believed
    plain = run_numsan.run_forked(program, args=args, cwd=tmp_path)
    watched = run_numsan.run_watched_fork(program, args=args, cwd=tmp_path, clean=not args)
    assert watched.returncode == plain.returncode == 0, watched.describe()
    assert watched.stdout == plain.stdout == "after it: True\n", watched.describe()
    return program, watched


@pytest.mark.parametrize("check", RAISES)
def test_exception_that_was_caught(check, warm, tmp_path):
    program, watched = watched_caught(tmp_path, RAISES[check], ["bad"])
    assert [f["severity"] for f in watched.findings] == ["warning"], watched.describe()
    first = watched.findings[0]
    assert (first["op"], first["step"], first["escape"]["into"]) == ("aten::div", 3, "host"), watched.describe()
    assert first["location"]["line"] == run_numsan.marked_line(program), watched.describe()
    assert "a check of the program read it and raised an exception, which the program caught" in first["evidence"], \
        watched.describe()


def test_exception_of_torch_that_was_caught(warm, tmp_path):
    """Its message has the values in it: they were read as numbers, too."""
    program, watched = watched_caught(tmp_path, "torch.distributions.Categorical(logits=scaled)", ["bad"])
    assert [f["severity"] for f in watched.findings] == ["warning"], watched.describe()
    assert watched.findings[0]["location"]["line"] == run_numsan.marked_line(program), watched.describe()


@pytest.mark.parametrize("check", SKIPS)
def test_batch_that_was_skipped_otherwise(check, warm, tmp_path):
    _, watched = watched_caught(tmp_path, SKIPS[check], ["bad"])
    assert watched.findings == [] and watched.stderr == "", watched.describe()


def test_raising_checks_of_healthy_values_say_nothing(warm, tmp_path):
    for check in RAISES.values():
        _, watched = watched_caught(tmp_path, check)
        assert watched.findings == [] and watched.stderr == "", watched.describe()
