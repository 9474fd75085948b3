"""Programs that check their own values: told of where they ended over one, silent where they trained on."""
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


def watched_and_plain(tmp_path, check, args=()):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("CHECK", check))
    plain = run_numsan.run_plain(program, args=args, cwd=tmp_path)
    watched = run_numsan.run(program, args=args, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout), watched.describe()
    assert watched.stderr.startswith(plain.stderr), watched.describe()  # the traceback, if there is one
    run_numsan.validate(watched.report)
    return program, watched


@pytest.mark.parametrize("check", ENDS)
def test_program_that_ended_over_its_check(check, warm, tmp_path):
    text, status = ENDS[check]
    program, watched = watched_and_plain(tmp_path, text, ["bad"])
    assert watched.returncode == status, watched.describe()
    assert [f["severity"] for f in watched.findings] == ["warning"], watched.describe()
    first = watched.findings[0]
    assert (first["op"], first["step"], first["escape"]["into"]) == ("aten::div", 3, "host"), watched.describe()
    assert first["location"]["line"] == run_numsan.marked_line(program), watched.describe()
    assert any(e.startswith("a check of the program read it") for e in first["evidence"]), watched.describe()


def test_program_that_skips_the_batch_and_trains_on(warm, tmp_path):
    _, watched = watched_and_plain(tmp_path, "if not torch.isfinite(loss): continue", ["bad"])
    assert watched.returncode == 0 and watched.stderr == "" and not watched.findings, watched.describe()


def test_checks_of_healthy_values_say_nothing(warm, tmp_path):
    _, watched = watched_and_plain(tmp_path, "; ".join(text for text, _ in ENDS.values() if not text.startswith("if")))
    assert watched.returncode == 0 and watched.stderr == "" and not watched.findings, watched.describe()


def test_healthy_program_that_fails_otherwise_says_nothing(warm, tmp_path):
    masked = "scaled.masked_fill(scaled == 0, -torch.inf).isinf().all().item()"
    check = f"assert torch.isfinite(loss); {masked} and step == 4 and 1 / 0"
    _, watched = watched_and_plain(tmp_path, check)
    assert watched.returncode == 1 and "ZeroDivisionError" in watched.stderr, watched.describe()
    assert not watched.findings, watched.describe()
