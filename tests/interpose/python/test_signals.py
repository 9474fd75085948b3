"""A signal that arrives while numsan asks Python for names: what its handler raises is the program's."""
import pytest
import run_numsan

# The parameter is asked for its identity inside of the look-up, and signals then: no clock is involved.
PROGRAM = """
import signal, sys, torch
class Expired(Exception):
    pass
{handler}
signal.signal(signal.SIGALRM, handler)

def is_look_up(frame):
    while frame is not None and frame.f_code.co_filename != "<numsan>":
        frame = frame.f_back
    return frame is not None

class Asked(torch.nn.Parameter):
    times = 0
    @property
    def _cdata(self):
        if is_look_up(sys._getframe()):
            Asked.times += 1
            signal.raise_signal(signal.SIGALRM)
        return super()._cdata

weight = torch.nn.Parameter(torch.zeros(3))
asked = Asked(torch.zeros(3))
try:
    with torch.no_grad():
        weight.add_(torch.full((3,), -1.0).log())
    if "bare" in sys.argv:
        signal.raise_signal(signal.SIGALRM)
    for _ in range(1000):
        pass
    print("the handler was lost", Asked.times)
except Expired:
    print("expired")
finally:
    print("asked", Asked.times > 0 or "bare" in sys.argv)
"""
HANDLERS = {"exit": "def handler(*_): sys.exit(7)", "interrupt": "def handler(*_): raise KeyboardInterrupt",
            "exception": "def handler(*_): raise Expired", "builtin": "handler = signal.default_int_handler"}


@pytest.mark.parametrize("name", HANDLERS)
def test_what_a_handler_raises_reaches_the_program(name, warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(handler=HANDLERS[name]))
    bare = run_numsan.run_plain(program, args=["bare"], cwd=tmp_path)
    assert bare.stdout == ("expired\n" if name == "exception" else "") + "asked True\n", bare.describe()
    watched = run_numsan.run(program, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (bare.returncode, bare.stdout), watched.describe()
