"""A signal that arrives while numsan asks Python for names: what its handler raises is the program's, with and without numsan."""
import pytest
import run_numsan

# The first alarm comes while a result that is no finding yet is computed. The update takes longer than the second alarm, and its
# result is a finding: that handler is pending when names are looked up.
PROGRAMS = {
    "before": """
with torch.no_grad():
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    weight.add_(bad.pow_(0.37))
""",
    "meanwhile": """
bad.pow_(0.37)
with torch.no_grad():
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    weight.add_(bad)
""",
}
START = """
import signal, sys, torch
{handler}
signal.signal(signal.SIGALRM, handler)
weight = torch.nn.Parameter(torch.zeros(3000, 3000))
bad = torch.full((3000, 3000), -1.0)
"""
END = """
for _ in range(1000000):
    pass
print("the handler was lost")
"""
HANDLERS = {"exit": ("def handler(*_): sys.exit(7)", 7), "interrupt": ("def handler(*_): raise KeyboardInterrupt", 130)}


@pytest.mark.parametrize("when", PROGRAMS)
@pytest.mark.parametrize("name", HANDLERS)
def test_what_a_handler_raises_reaches_the_program(name, when, warm, tmp_path):
    handler, status = HANDLERS[name]
    program = tmp_path / "program.py"
    program.write_text(START.format(handler=handler) + PROGRAMS[when] + END)
    bare = run_numsan.run_plain(program, cwd=tmp_path)
    assert (bare.returncode % 256, bare.stdout) in ((status, ""), (256 - 2, "")), bare.describe()
    watched = run_numsan.run(program, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (bare.returncode, ""), watched.describe()
