"""Ops inside code that torch.fx wrote are told of at the program's line that it was made from."""
import pytest

import run_numsan

LAYER = """
import torch
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x, bad):
        h = self.inner(x) * 2
        h = h * bad
        return h.abs().{op}()  # BUG
"""
PROGRAM = """
import sys, torch
from layer import Layer
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = Layer(), torch.nn.Linear(4, 1)
    def forward(self, x, bad):
        h = torch.tanh(x)
        if sys.argv[2] == 'break':
            torch._dynamo.graph_break()
        return self.last(self.first(h, bad))
net = Net()
call = net
if sys.argv[1] == 'export':
    call = torch.export.export(net, (torch.randn(8, 4), torch.tensor(1.0))).module()
elif sys.argv[1] != 'plain':
    call = torch.compile(net, backend=sys.argv[1], fullgraph=sys.argv[2] == 'whole')
optimizer = torch.optim.SGD(call.parameters(), lr=0.1)
for step in range(4):
    bad = torch.tensor(0.0 if step == 2 and sys.argv[3] == 'bad' else 1.0)
    loss = call(torch.randn(8, 4), bad).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def run(tmp_path, op, *arguments, clean=False):
    layer, program = tmp_path / "layer.py", tmp_path / "program.py"
    layer.write_text(LAYER.format(op=op))
    program.write_text(PROGRAM)
    done = run_numsan.run_watched_fork(program, args=arguments, cwd=tmp_path, timeout=400, clean=clean)
    assert done.returncode == 0, done.describe()
    return done, layer


@pytest.mark.parametrize("op", ["log", "sqrt"], ids=["forward", "backward"])
@pytest.mark.parametrize("arguments", [("eager", "whole"), ("aot_eager", "whole"), ("eager", "break"),
                                       ("aot_eager", "break"), ("export", "whole")], ids="-".join)
def test_the_line_is_that_of_the_program(op, arguments, warm, tmp_path):
    done, layer = run(tmp_path, op, *arguments, "bad")
    found = done.findings[0]
    place = found["location"]
    assert (place["file"], place["line"]) == (str(layer), run_numsan.marked_line(layer)), done.describe()
    if op == "log":
        frames = [(frame["file"], frame["function"]) for frame in found["stack"]]
        assert any(function.endswith("forward") for file, function in frames if file == str(layer)), done.describe()


METACLASS = """
asked = []
class Meta(type):
    def __getattribute__(cls, name):
        asked.append(name)
        for number in range(1000):
            globals()['new_%d_%d' % (len(asked), number)] = number
        return super().__getattribute__(name)
class Odd(metaclass=Meta):
    def method(self):
        pass
asked.clear()
"""


def test_a_look_up_runs_no_code_of_a_metaclass(warm, tmp_path):
    layer, program = tmp_path / "layer.py", tmp_path / "program.py"
    layer.write_text(METACLASS + LAYER.format(op="log"))
    program.write_text(PROGRAM + "import layer\nprint('asked', layer.asked)\n")
    done = run_numsan.run(program, args=("eager", "whole", "bad"), cwd=tmp_path, timeout=400)
    assert done.returncode == 0, done.describe()
    assert done.findings[0]["location"]["line"] == run_numsan.marked_line(layer), done.describe()
    assert "asked []" in done.stdout, done.describe()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_healthy_program_is_silent(backend, warm, tmp_path):
    done, _ = run(tmp_path, "log1p", backend, "whole", "good", clean=True)
    assert done.findings == [], done.describe()
