"""PythonStacks on the interpreter that runs the tests: frames against traceback, names against torch."""

import ctypes
import pathlib
import subprocess
import sys

import pytest
import walk
from walk import frames

ROOT = pathlib.Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.xdist_group("frames")  # what reads frames is compiled for one worker
torch = pytest.importorskip("torch")


@pytest.fixture(scope="session")
def lib(stacks_library):
    library = walk.load(stacks_library)
    mode, why = walk.attach(library)
    assert mode == walk.best_mode(), why
    return library


@pytest.mark.parametrize("place", walk.PLACES, ids=lambda place: place.__name__)
def test_place(lib, place):
    place(lib)


class Leaf(torch.nn.Module):
    def __init__(self, lib):
        super().__init__()
        self.lib = [lib]

    def forward(self, x):
        return self.lib[0].stacks_capture()


class Root(torch.nn.Module):
    def __init__(self, lib):
        super().__init__()
        self.leaf = Leaf(lib)
        self.other = Leaf(lib)

    def forward(self, x):
        return [leaf(x) for leaf in (self.leaf, self.other)]


def test_modules_on_the_stack(lib):
    root = Root(lib)
    assert not lib.stacks_in_module(lib.stacks_capture())
    for capture, leaf in zip(root(torch.zeros(1)), (root.leaf, root.other)):
        assert lib.stacks_in_module(capture)
        assert [self for *_, self in frames(lib, capture) if self] == [id(leaf), id(root)]


def names(lib, gradient_of=None):
    asked = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(gradient_of) if gradient_of else None
    rows = [line.split("\t") for line in lib.stacks_names(asked).decode().splitlines()]
    return {(kind, int(address)): name for kind, address, name in rows}


def test_names(lib, monkeypatch):
    main = sys.modules["__main__"]
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    bare = torch.zeros(3, requires_grad=True)
    monkeypatch.setattr(main, "my_model", model, raising=False)
    monkeypatch.setattr(main, "w1", bare, raising=False)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    state = torch.get_rng_state()
    gradients = {one._cdata: one.grad._cdata for one in model.parameters()}
    found = names(lib, gradients.get)
    assert torch.equal(state, torch.get_rng_state())
    weight = model[0].weight
    assert found["module", id(model)] == "my_model"
    assert found["module", id(model[0])] == "my_model.0"
    assert found["parameter", weight._cdata] == "my_model.0.weight"
    assert found["gradient", weight.grad._cdata] == f"my_model.0.weight of {weight._cdata}"
    assert found["buffer", model[1].running_mean._cdata] == "my_model.1.running_mean"
    assert found["state", optimizer.state[weight]["exp_avg"]._cdata] == "exp_avg of my_model.0.weight"
    assert found["parameter", bare._cdata] == "w1"


def test_names_of_a_module_without_a_variable(lib):
    kept = [Root(lib)]
    found = names(lib)
    assert found["module", id(kept[0])] == "Root"
    assert found["module", id(kept[0].leaf)] == "Root.leaf"


def test_names_of_twins_are_told_apart(lib):
    """Of two modules of one class a finding is one's; so are parameters of two optimizers that nobody else names."""
    class Twin(Root):
        pass

    twins = [Twin(lib) for _ in range(3)]
    bare = [torch.zeros(3, requires_grad=True) for _ in range(2)]
    optimizers = [torch.optim.SGD([one]) for one in bare]
    found = names(lib)
    assert [found["module", id(twin)] for twin in twins] == ["Twin", "Twin(2)", "Twin(3)"]
    assert found["module", id(twins[1].leaf)] == "Twin(2).leaf"
    named = [found["parameter", one._cdata] for one in bare]
    assert len(set(named)) == 2 and all(name.startswith("param_groups") for name in named), named
    assert names(lib) == found and len(optimizers) == 2


def test_names_by_what_holds_a_module(lib, monkeypatch):
    class Agent:
        def __init__(self):
            self.critic_1, self.critic_2 = Root(lib), Root(lib)

        @property
        def trap(self):
            raise AssertionError("code of the program ran")

        def __getattribute__(self, name):
            raise AssertionError("code of the program ran")

    agent, pair, table = Agent(), [Root(lib), Root(lib)], {"left": Root(lib)}
    for name, value in (("agent", agent), ("pair", pair), ("table", table)):
        monkeypatch.setitem(sys.modules["__main__"].__dict__, name, value)
    found = names(lib)
    held = object.__getattribute__(agent, "__dict__")
    assert [found["module", id(held[name])] for name in held] == ["agent.critic_1", "agent.critic_2"]
    assert [found["module", id(one)] for one in pair] == ["pair[0]", "pair[1]"]
    assert found["module", id(table["left"])] == "table['left']"


def test_names_among_many_objects(lib, monkeypatch):
    """The walk has some milliseconds: what a variable leads to comes before what lies in large containers."""
    class Trainer:
        def __init__(self):
            self.history = [[i] for i in range(600_000)]
            self.net = Root(lib)

    main = sys.modules["__main__"].__dict__
    monkeypatch.setitem(main, "early", [[i] for i in range(600_000)])
    monkeypatch.setitem(main, "trainer", Trainer())
    monkeypatch.setitem(main, "model", Root(lib))
    found = names(lib)
    assert found["module", id(main["model"].leaf)] == "model.leaf"
    assert found["module", id(main["trainer"].net)] == "trainer.net"


def test_names_of_what_a_closure_and_a_generator_hold(lib):
    class Held(Root):
        pass

    def in_closure(net):
        return lambda: net

    def generated(net):
        yield net

    call, generator, method = in_closure(Held(lib)), generated(Held(lib)), Held(lib).forward
    next(generator)
    found = names(lib)
    kept = [call(), generator.gi_frame.f_locals["net"], method.__self__]
    assert sorted(found["module", id(one)] for one in kept) == ["Held", "Held(2)", "Held(3)"]


def test_names_keep_nothing_alive(lib):
    import gc
    import weakref
    module = torch.nn.Linear(1, 1)
    gone = weakref.ref(module)
    gc.disable()
    try:
        names(lib)
        assert not gc.isenabled()
        del module
        assert gone() is None
    finally:
        gc.enable()


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import torch
import walk
lib = walk.load({library!r})
assert walk.attach(lib)[0] == walk.best_mode()
asked = []
def ask():
    rows = [line.split("\\t") for line in lib.stacks_names(None).decode().splitlines()]
    asked.append({{int(address): name for kind, address, name in rows if kind == "module"}})
"""


def run_script(library, text):
    script = SCRIPT.format(folder=str(ROOT / "tests/interpose/python"), library=str(library)) + text
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_names_of_local_variables(stacks_library):
    run_script(stacks_library, """
def train(given, *rest, key=None):
    own, captured, unset = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), None
    del unset
    def closure(parameter):
        def inner():
            return captured, parameter
        ask()
        return inner
    closure(torch.nn.Linear(1, 1))
    named = asked[-1]
    assert [named[id(one)] for one in (given, own, captured, key)] == ["given", "own", "captured", "key"], named
    assert "parameter" in named.values() and named[id(rest[0])] == "rest[0]", named
train(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), key=torch.nn.Linear(1, 1))
""")


@pytest.mark.parametrize("when", ["settrace", "setprofile"])
def test_names_leave_variables_to_a_debugger(when, stacks_library):
    """A frame whose trace or profile function runs takes its variables from a dictionary afterwards, up to 3.12."""
    run_script(stacks_library, f"""
def traced(a):
    b = a + 1
    return a, b
def trace(frame, event, arg):
    if frame.f_code is traced.__code__:
        if event == "line" and "b" in frame.f_locals:
            frame.f_locals["b"] = 7  # as pdb does it
        ask()
    return trace
sys.{when}(trace)
result = traced(1)
sys.{when}(None)
assert result == ((1, 7) if {when!r} == "settrace" else (1, 2)), result
assert len(asked) >= 2
""")


def test_names_hold_no_gradient(lib):
    """Autograd exchanges gradients without the interpreter's lock: a reference to one may be to what dies just then."""
    model = torch.nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    gradient = model.weight.grad
    seen = []

    def gradient_of(address):
        seen.append((sys.getrefcount(gradient), gradient._use_count()))
        return gradient._cdata if address == model.weight._cdata else None

    before = sys.getrefcount(gradient), gradient._use_count()
    found = names(lib, gradient_of)
    assert ("gradient", gradient._cdata) in found
    assert seen and set(seen) == {before}


def test_names_leave_alone_what_is_being_built(lib):
    """A tuple may be filled only by who has the one reference to it; the collector knows it already."""
    import threading
    import time
    api = ctypes.pythonapi
    new, fill, own, drop = api.PyTuple_New, api.PyTuple_SetItem, api.Py_IncRef, api.Py_DecRef
    new.restype, new.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    fill.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.py_object]
    own.argtypes, drop.argtypes = [ctypes.py_object], [ctypes.c_void_p]
    built, refused, done = [], [], threading.Event()

    def build():
        while not done.is_set():
            one, item = new(1), object()
            time.sleep(0)  # others may run
            own(item)
            try:
                fill(one, 0, item)
                built.append(item)
            except SystemError as error:
                refused.append(error)
            drop(one)

    builder = threading.Thread(target=build)
    builder.start()
    try:
        for _ in range(10):
            names(lib)
    finally:
        done.set()
        builder.join()
    assert built and not refused, refused[:1]


def test_capture_is_quick(lib):
    def go(n):
        return go(n - 1) if n else min(lib.stacks_time(20000) for _ in range(5))
    assert go(20) < 5000  # ns; 0.1 us unloaded: a lock of the interpreter or an allocation would show


def test_public_api_shows_the_same(lib):
    assert walk.attach(lib, "api")[0] == "api"
    try:
        for place in walk.PLACES:
            place(lib)
        root = Root(lib)
        for _ in range(2):  # the first time its modules are not known yet
            for capture, leaf in zip(root(torch.zeros(1)), (root.leaf, root.other)):
                assert lib.stacks_in_module(capture)
                selves = [self for *_, self in frames(lib, capture) if self]
                assert selves == ([id(leaf), id(root)] if sys.version_info >= (3, 12) else [])  # PyFrame_GetVarString
    finally:
        walk.attach(lib)


MADE_ANEW = """
import gc, weakref
def made(i):
    scope = {{}}
    exec(f"def made_{{i}}(lib): return lib.stacks_capture()", scope)
    return scope[f"made_{{i}}"]
def deep(n, function):
    return deep(n - 1, function) if n else function(lib)
assert walk.attach(lib, {mode!r})[0] == {mode!r}
first = made(0)
gone = weakref.ref(first.__code__)
stack = deep(55, first)
kept = []
for i in range(1, 40000):
    function = made(i)
    kept.append(function)
    if len(kept) > 3000:
        kept = kept[1500:]
    last = deep(55, function)
assert walk.frames(lib, last)[0][2] == "made_39999", walk.frames(lib, last)[0]
assert walk.frames(lib, stack) == [], "it has given way"
assert lib.stacks_known_codes() < 25000, lib.stacks_known_codes()
del first
gc.collect()
assert gone() is None
"""


@pytest.mark.parametrize("mode", ["raw", "api"])
def test_functions_that_are_gone_are_forgotten(mode, stacks_library):
    if mode == "raw" and walk.best_mode() != "raw":
        pytest.skip("frames are not read where they lie on this interpreter")
    run_script(stacks_library, MADE_ANEW.format(mode=mode))
