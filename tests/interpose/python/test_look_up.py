"""Looking up names is nothing that the program can see: none of its code runs, its collector stays as it is, and no
wait for its interpreter is without an end."""
import pathlib
import sys
import sysconfig

import compiled_once
import pytest
import run_numsan
from nightly import in_ci

HERE = pathlib.Path(__file__).resolve().parent
# Whatever of the program's could run in a look-up says so: properties, __torch_function__, handlers of signals, trace
# functions, finalizers and callbacks of the collector on a thread that is not the program's.
TRAPS = """
import gc, signal, sys, threading, torch
ran = []
own = {threading.get_ident()}
class Trap(torch.nn.Parameter):
    @property
    def _cdata(self):
        ran.append("_cdata")
        return super()._cdata
    @property
    def is_leaf(self):
        ran.append("is_leaf")
        return super().is_leaf
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if threading.get_ident() not in own:
            ran.append("__torch_function__")
        return super().__torch_function__(function, types, args, kwargs or {})
class Meta(type):
    def __instancecheck__(cls, other):
        ran.append("__instancecheck__")
        return type.__instancecheck__(cls, other)
class Holder(metaclass=Meta):
    def __getattribute__(self, name):
        ran.append("__getattribute__")
        return object.__getattribute__(self, name)
class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        if threading.get_ident() not in own:
            ran.append("__del__")
def collecting(phase, info):
    if threading.get_ident() not in own:
        ran.append("gc " + phase)
gc.callbacks.append(collecting)
gc.set_threshold(1, 1, 1)  # any allocation may begin a collection
trap, holder = Trap(torch.zeros(3)), Holder()
weight = torch.nn.Parameter(torch.zeros(3))
seen_off = []
done = threading.Event()
def sample():
    while not done.is_set():
        if not gc.isenabled():
            seen_off.append(1)
sampler = threading.Thread(target=sample)
sampler.start()
own.add(sampler.ident)
ran.clear()  # the sampler's first steps
for step in range(20):
    Cycle()
    with torch.no_grad():
        weight.add_(torch.full((3,), -1.0).log() if step % 2 else torch.full((3,), 0.0).log())
    weight = torch.nn.Parameter(torch.zeros(3))
done.set()
sampler.join()
print("ran", sorted(set(ran)), "collector off", len(seen_off))
"""


def test_nothing_of_the_program_runs(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(TRAPS)
    bare = run_numsan.run_forked(program, cwd=tmp_path)
    assert (bare.returncode, bare.stdout) == (0, "ran [] collector off 0\n"), bare.describe()
    watched = run_numsan.run(program, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (0, bare.stdout), watched.describe()
    assert watched.findings, watched.describe()
    assert any(tensor["name"] == "weight" for found in watched.findings for tensor in found["contaminated"])


HANDLERS = {"exit": "def handler(*_): sys.exit(7)", "interrupt": "def handler(*_): raise KeyboardInterrupt",
            "exception": "def handler(*_): raise Expired", "builtin": "handler = signal.default_int_handler"}
# The second thread sends signals all the time while the first makes findings.
SIGNALS = """
import signal, sys, threading, torch
class Expired(Exception):
    pass
{handler}
caught = []
def count(*arguments):
    caught.append(1)
    if len(caught) == 40:
        handler(*arguments)
signal.signal(signal.SIGALRM, count)
main = threading.main_thread().ident
stop = threading.Event()
def send():
    while not stop.wait(0.0005):
        signal.pthread_kill(main, signal.SIGALRM)
sender = threading.Thread(target=send, daemon=True)
weight = torch.nn.Parameter(torch.zeros(3))
try:
    sender.start()
    while True:
        with torch.no_grad():
            weight.add_(torch.full((3,), -1.0).log())
        weight = torch.nn.Parameter(torch.zeros(3))
except Expired:
    print("expired")
finally:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    stop.set()
    print("caught", len(caught) >= 40)
"""


@pytest.mark.parametrize("name", HANDLERS)
def test_what_a_handler_raises_reaches_the_program(name, warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SIGNALS.format(handler=HANDLERS[name]))
    bare = run_numsan.run_forked(program, cwd=tmp_path, any_end=True)
    assert bare.stdout == ("expired\n" if name == "exception" else "") + "caught True\n", bare.describe()
    watched = run_numsan.run(program, cwd=tmp_path)
    assert (watched.returncode, watched.stdout) == (bare.returncode, bare.stdout), watched.describe()


# What holds the interpreter's lock and waits in C++ for a thread that has a finding to report: with the lock the wait
# has no end unless numsan's has one. An operator that is called with the lock and with a mutex, which the thread wants
# that gets the lock. And a pool of threads that Python knows nothing of, whose owner waits for all its work, with the
# lock, as where Py_BEGIN_ALLOW_THREADS was forgotten, or without it.
CALLS = """
import sys, threading, torch
sys.path.insert(0, sys.argv[2])
import waits
weight = torch.nn.Parameter(torch.zeros(3))
def use_lock():
    for _ in range(200):
        waits.locked(torch.zeros(3))
thread = threading.Thread(target=(lambda: waits.work(weight)) if sys.argv[1] == "wait" else use_lock)
thread.start()
if sys.argv[1] == "wait":
    waits.wait_for_work()
elif sys.argv[1].startswith("pool"):
    getattr(waits, sys.argv[1])([weight, *(torch.nn.Parameter(torch.zeros(3)) for _ in range(3))])
else:
    for _ in range(3):
        waits.locked(weight)
thread.join()
print("done", bool(weight.isnan().all()))
"""


@pytest.fixture(scope="module")
def extension():
    import torch.utils.cpp_extension as of_torch
    source = HERE / "waits.cpp"
    folder = run_numsan.CACHE / "tests" / f"waits-{of_torch.torch.__version__}-{sys.implementation.cache_tag}"
    if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("no Python.h here: extensions cannot be built")
    libraries = [f"-L{path}" for path in of_torch.library_paths()]
    compiled_once.compiled_once(source, folder / "waits.so", lambda output: [
        "g++", "-std=c++20", "-O0", "-fPIC", "-shared", "-w", "-DTORCH_EXTENSION_NAME=waits",
        *(f"-I{path}" for path in of_torch.include_paths()), f"-I{sysconfig.get_path('include')}", str(source),
        *libraries, "-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10", "-o", str(output)])
    return folder


@pytest.mark.parametrize("how", in_ci(["wait", "locked", "pool", "pool_released"], "wait", "pool"))
def test_an_extension_that_holds_the_lock_is_waited_for_no_longer_than_a_second(how, extension, warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(CALLS)
    watched = run_numsan.run(program, args=[how, str(extension)], cwd=tmp_path, timeout=120)
    assert (watched.returncode, watched.stdout) == (0, "done True\n"), watched.describe()
    # Threads that Python knows nothing of work for a call made elsewhere: what they make is reported there.
    assert bool(watched.findings) == (not how.startswith("pool")), watched.describe()
