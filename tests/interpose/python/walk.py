"""Frames as PythonStacks reads them against those of traceback, from every kind of frame; needs no torch, no pytest.

    python3.N walk.py libstacks.so raw|api    prints the mode it got and why, then what disagrees; status 1 if there is
"""
import asyncio
import ctypes
import sys
import threading
import traceback


def load(path):
    lib = ctypes.CDLL(str(path))  # calls release the interpreter's lock
    for name in ("stacks_attach", "stacks_resolve", "stacks_names"):
        getattr(lib, name).restype = ctypes.c_char_p
    lib.stacks_time.restype = ctypes.c_double
    return lib


def attach(lib, mode="raw"):
    """The mode that was got, and why it is not raw."""
    return lib.stacks_attach(int(mode == "api")).decode().split("|")


def best_mode():
    """What the walk must be on this interpreter."""
    return "raw" if getattr(sys, "abiflags", "").find("t") < 0 else "api"


def frames(lib, stack):
    rows = [line.split("\t") for line in lib.stacks_resolve(stack).decode().splitlines()]
    return [(file, int(line), function, int(self)) for file, line, function, self in rows]


def check(lib, capture, expected):
    """Frames of `capture` are those of traceback, whose last entry is the frame that captured."""
    assert capture != 0
    want = [(f.filename, f.lineno, f.name) for f in reversed(expected)][:64]
    got = [(file, line, function.rsplit(".", 1)[-1]) for file, line, function, _ in frames(lib, capture)]
    assert got == want, f"got {got}, want {want}"


def here(lib):
    return lib.stacks_capture(), traceback.extract_stack()  # one line: the same place


def function(lib):
    check(lib, *here(lib))


def nested_lambda_and_qualified_name(lib):
    def nested():
        return (lambda: here(lib))()
    capture, expected = nested()
    check(lib, capture, expected)
    qualified = "nested_lambda_and_qualified_name.<locals>.nested"
    since_3_11 = hasattr(here.__code__, "co_qualname")
    assert frames(lib, capture)[2][2] == (qualified if since_3_11 else "nested")


def functions_made_anew(lib):
    """Memory of a code object that is gone is used again: its stacks are not another function's."""
    for i in range(300):
        name, line = f"made_{i % 3 + 100}", i % 5 + 2  # of the same sizes
        scope = {}
        exec(f"def {name}(lib):{chr(10) * (line - 1)}    return lib.stacks_capture()\n", scope)
        (file, got, function, _), *_ = frames(lib, scope[name](lib))
        assert (file, got, function) == ("<string>", line, name), f"{(file, got, function)}, not {(line, name)}"


class Methods:
    def plain(self, lib):
        return here(lib)

    @classmethod
    def of_class(cls, lib):
        return here(lib)

    @staticmethod
    def static(lib):
        return here(lib)

    @property
    def lib(self):
        return here(self.kept)

    def with_cell(self, lib):
        return (lambda: (self, here(lib)))()[1]


def method(lib):
    instance = Methods()
    instance.kept = lib
    for capture, expected in (instance.plain(lib), Methods.of_class(lib), Methods.static(lib), instance.lib,
                              instance.with_cell(lib)):
        check(lib, capture, expected)


def comprehension(lib):
    for capture, expected in [here(lib) for _ in range(3)]:
        check(lib, capture, expected)
    for capture, expected in {i: here(lib) for i in range(3)}.values():
        check(lib, capture, expected)


def generator(lib):
    def generate():
        yield here(lib)
        yield here(lib)

    def outer():
        yield from generate()
    for capture, expected in outer():
        check(lib, capture, expected)
    for capture, expected in (here(lib) for _ in range(2)):
        check(lib, capture, expected)


def coroutine(lib):
    async def inner():
        await asyncio.sleep(0)
        return here(lib)

    async def outer():
        return await inner()
    check(lib, *asyncio.run(outer()))


def decorator(lib):
    def decorated(inner):
        return lambda *arguments: inner(*arguments)
    check(lib, *decorated(here)(lib))


def builtin_callback(lib):
    results = []
    sorted([1], key=lambda _: results.append(here(lib)) or 0)
    check(lib, *results[0])


def after_an_exception(lib):
    try:
        raise KeyError(1)
    except KeyError:
        check(lib, *here(lib))
    finally:
        check(lib, *here(lib))


def traced(lib):
    """A trace function makes the interpreter use instrumented bytecode."""
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        check(lib, *here(lib))
    finally:
        sys.settrace(before)


def threads(lib):
    results = {}

    def work(i):
        for _ in range(200):
            results[i] = here(lib)
    started = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    for capture, expected in results.values():
        check(lib, capture, expected)
    assert len({capture for capture, _ in results.values()}) == 1


def recursion_is_cut_at_the_outer_end(lib):
    def go(n):
        return go(n - 1) if n else here(lib)
    capture, expected = go(100)
    assert len(frames(lib, capture)) == 64
    check(lib, capture, expected)


def code_of_exec_is_told_apart_when_its_address_is_used_again(lib):
    for i in range(200):
        space = {"lib": lib}
        name = f"made_{i}"
        exec(compile(f"def {name}():\n    return lib.stacks_capture()\n", f"<made {i}é€>", "exec"), space)
        top = frames(lib, space[name]())[0]
        assert top[:3] == (f"<made {i}é€>", 2, name), top


def code_is_told_apart_by_its_first_line_alone(lib):
    file = "<made>"
    for i in range(200):
        space = {"lib": lib}
        exec(compile("\n" * i + "def made():\n    return lib.stacks_capture()\n", file, "exec"), space)
        top = frames(lib, space["made"]())[0]
        assert top[:3] == (file, i + 2, "made"), top


def callers_at_other_lines(lib):
    def inner():
        return here(lib)
    first = inner()
    second = inner()
    third, fourth = inner(), inner()
    for capture, expected in (first, second, third, fourth):
        check(lib, capture, expected)
    assert len({capture for capture, _ in (first, second, third)}) == 3


def generators_in_turns(lib):
    """Frames that come and go under callers that stay, as greenlets have them."""
    def generate():
        while True:
            yield here(lib)

    def ask(generator):
        return next(generator)
    running = [generate(), generate()]
    for _ in range(3):
        for one in running:
            check(lib, *next(one))
            check(lib, *ask(one))


def same_place_is_the_same_stack(lib):
    assert len({lib.stacks_capture() for _ in range(100)}) == 1


PLACES = [function, nested_lambda_and_qualified_name, method, comprehension, generator, coroutine, decorator,
          builtin_callback, after_an_exception, traced, threads, recursion_is_cut_at_the_outer_end,
          code_of_exec_is_told_apart_when_its_address_is_used_again, code_is_told_apart_by_its_first_line_alone,
          functions_made_anew, callers_at_other_lines, generators_in_turns, same_place_is_the_same_stack]


def main(path, mode):
    lib = load(path)
    print("|".join(attach(lib, mode)))
    wrong = 0
    for place in PLACES:
        try:
            place(lib)
        except Exception:
            wrong += 1
            print(f"{place.__name__}: {traceback.format_exc()}")
    print(f"{len(PLACES) - wrong} of {len(PLACES)} places agree")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
