"""PythonStacks on the running interpreter: frames against traceback, names against torch."""

import asyncio
import ctypes
import pathlib
import subprocess
import sys
import threading
import traceback

import pytest

torch = pytest.importorskip("torch")
ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def lib(tmp_path_factory):
    path = tmp_path_factory.mktemp("stacks") / "libstacks.so"
    sources = [*(ROOT / f"interpose/python/{name}.cpp" for name in ("api", "layout", "frames", "names")), ROOT / "host/stacks/stack_table.cpp",
               ROOT / "tests/interpose/python/stacks_library.cpp"]
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
                    f"-I{ROOT}", *map(str, sources), "-ldl", "-o", str(path)], check=True)
    library = ctypes.CDLL(str(path))
    for name in ("stacks_attach", "stacks_resolve", "stacks_names"):
        getattr(library, name).restype = ctypes.c_char_p
    library.stacks_time.restype = ctypes.c_double
    mode, why = library.stacks_attach(0).decode().split("|")
    if sys.version_info[:2] in ((3, 10), (3, 11), (3, 12), (3, 13)) and getattr(sys, "_is_gil_enabled", lambda: True)():
        assert mode == "raw", why
    return library


def frames(lib, stack):
    rows = [line.split("\t") for line in lib.stacks_resolve(stack).decode().splitlines()]
    return [(file, int(line), function, int(self)) for file, line, function, self in rows]


def check(lib, capture, expected):
    """Frames of `capture` are those of traceback, whose last entry is the frame that captured."""
    assert capture != 0
    want = [(f.filename, f.lineno, f.name) for f in reversed(expected)][:64]
    got = [(file, line, function.rsplit(".", 1)[-1]) for file, line, function, _ in frames(lib, capture)]
    assert got == want


def here(lib):
    return lib.stacks_capture(), traceback.extract_stack()  # one line: the same place


def test_function(lib):
    check(lib, *here(lib))


def test_nested_lambda_and_qualified_name(lib):
    def nested():
        return (lambda: here(lib))()
    capture, expected = nested()
    check(lib, capture, expected)
    assert frames(lib, capture)[2][2] == "test_nested_lambda_and_qualified_name.<locals>.nested"


def test_comprehension(lib):
    for capture, expected in [here(lib) for _ in range(3)]:
        check(lib, capture, expected)


def test_generator(lib):
    def generate():
        yield here(lib)
        yield here(lib)

    def outer():
        yield from generate()
    for capture, expected in outer():
        check(lib, capture, expected)


def test_async(lib):
    async def inner():
        await asyncio.sleep(0)
        return here(lib)

    async def outer():
        return await inner()
    check(lib, *asyncio.run(outer()))


def test_builtin_callback(lib):
    results = []
    sorted([1], key=lambda _: results.append(here(lib)) or 0)
    check(lib, *results[0])


def test_threads(lib):
    results = {}

    def work(i):
        for _ in range(200):
            results[i] = here(lib)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for capture, expected in results.values():
        check(lib, capture, expected)
    assert len({capture for capture, _ in results.values()}) == 1


def test_recursion_is_cut_at_the_outer_end(lib):
    def go(n):
        return go(n - 1) if n else here(lib)
    capture, expected = go(100)
    assert len(frames(lib, capture)) == 64
    check(lib, capture, expected)


def test_code_of_exec_is_told_apart_when_its_address_is_used_again(lib):
    for i in range(200):
        space = {"lib": lib}
        name = f"made_{i}"
        exec(compile(f"def {name}():\n    return lib.stacks_capture()\n", f"<made {i}é€>", "exec"), space)
        top = frames(lib, space[name]())[0]
        assert top[:3] == (f"<made {i}é€>", 2, name)


def test_same_place_is_the_same_stack(lib):
    assert len({lib.stacks_capture() for _ in range(100)}) == 1


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


def names(lib):
    rows = [line.split("\t") for line in lib.stacks_names().decode().splitlines()]
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
    found = names(lib)
    assert torch.equal(state, torch.get_rng_state())
    weight = model[0].weight
    assert found["module", id(model)] == "my_model"
    assert found["module", id(model[0])] == "my_model.0"
    assert found["parameter", weight._cdata] == "my_model.0.weight"
    assert found["gradient", weight.grad._cdata] == "my_model.0.weight"
    assert found["buffer", model[1].running_mean._cdata] == "my_model.1.running_mean"
    assert found["state", optimizer.state[weight]["exp_avg"]._cdata] == "exp_avg of my_model.0.weight"
    assert found["parameter", bare._cdata] == "w1"


def test_names_of_a_module_without_a_variable(lib):
    kept = [Root(lib)]
    found = names(lib)
    assert found["module", id(kept[0])] == "Root"
    assert found["module", id(kept[0].leaf)] == "Root.leaf"


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


def test_capture_is_quick(lib):
    def go(n):
        return go(n - 1) if n else min(lib.stacks_time(20000) for _ in range(5))
    assert go(20) < 5000  # ns; 0.1 us unloaded: a lock of the interpreter or an allocation would show


def test_public_api_shows_the_same(lib):
    assert lib.stacks_attach(1).decode().startswith("api|")
    try:
        test_function(lib)
        test_generator(lib)
        test_async(lib)
        test_threads(lib)
        test_recursion_is_cut_at_the_outer_end(lib)
        root = Root(lib)
        assert all(map(lib.stacks_in_module, root(torch.zeros(1))))
    finally:
        lib.stacks_attach(0)
