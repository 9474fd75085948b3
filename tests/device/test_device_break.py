"""break=1 on a device: the program stops at the op that made the value, not when the device has told of it."""
import pathlib
import sys

import pytest

import run_numsan

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "debugger"))
import debugged  # noqa: E402

pytestmark = pytest.mark.xdist_group("device")  # one worker has the processes of which they are forks
PROGRAM = """
from prelude import *
def ratio(a, b):
    return a / b  # STOP
a = torch.tensor([1.0, 2.0]).to(GPU)
b = torch.tensor([1.0, 0.0]).to(GPU)
c = ratio(a, b)
b.add_(5)
print("sum", (c * 0 + 1).sum().item())
"""


@pytest.mark.usefixtures("warm")
def test_stops_in_the_frame_of_the_operator(test_device, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**test_device, "FAKEGPU_DELAY_US": "300"}
    session = debugged.Session(debugged.on_terminal([run_numsan.PYTHON, program], tmp_path, env=environment))
    session.child.expect(debugged.PROMPT)
    text = session.child.before
    assert f"program.py({run_numsan.marked_line(program, '# STOP')})ratio()" in text, text
    assert "[1.0, 0.0]" in session.ask("p _numsan.inputs[1].tolist()")
    assert "[1.0, inf]" in session.ask("p _numsan.outputs[0].tolist()")
    assert "NS" in session.ask("p _numsan.finding['code']")
    tried = session.ask("p _numsan.try_fix()")
    assert "Error" not in tried, tried
    session.go_on()
    text, status = session.ends()
    assert "sum" in text and status == 0, text
