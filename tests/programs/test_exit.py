"""What a program does at its exit it does under `halt` and `fail_on`, too: output that is still buffered is written,
`finally` and exit handlers run, whoever registered them."""
import pytest
import run_numsan

PROGRAM = """
import atexit, ctypes, sys, threading
libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
def at_exit(text):
    libc.__cxa_atexit(libc.puts, ctypes.c_void_p(libc.strdup(text)), None)
at_exit(b"handler of C")  # before numsan's own
import torch
at_exit(b"later handler of C")
def train():
    weight = torch.nn.Parameter(torch.ones(3))
    for step in range(4):
        loss = torch.log(weight - 1 - step).sum()
        loss.backward()
        weight.grad = None
        libc.printf(b"step %d in C\\n", step)
        print("step", step)
atexit.register(print, "handler of Python")
try:
    if sys.argv[1] == "thread":
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
    else:
        train()
    print("trained")
finally:
    print("finally")
"""


def run(tmp_path, thread, **options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return run_numsan.run(program, args=[thread], cwd=tmp_path, options=options, timeout=200)


@pytest.mark.parametrize("thread", ["main", "thread"])
def test_halt_ends_the_program_as_it_would_end_itself(thread, warm, tmp_path):
    done = run(tmp_path, thread, halt=1)
    assert done.returncode == 66 and len(done.findings) == 1, done.describe()
    lines = done.stdout.splitlines()
    assert {"finally", "handler of Python", "handler of C", "later handler of C"} <= set(lines), done.describe()
    if thread == "main":
        assert "trained" not in lines and "step 1" not in lines, done.describe()


def test_halt_ends_a_program_that_does_not_end(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import threading, torch\n"
                       "def train():\n"
                       "    weight = torch.nn.Parameter(torch.zeros(3))\n"
                       "    with torch.no_grad():\n"
                       "        weight.add_(torch.full((3,), -1.0).log())\n"
                       "threading.Thread(target=train).start()\n"
                       "while True:\n"
                       "    try:\n"
                       "        threading.Event().wait(0.1)\n"
                       "    except SystemExit:\n"
                       "        print('went on', flush=True)\n")
    done = run_numsan.run(program, cwd=tmp_path, options={"halt": 1}, timeout=200)
    assert (done.returncode, done.stdout) == (66, "went on\n"), done.describe()
    assert "numsan: halt=1: the program has not ended after 10 s and is ended now" in done.stderr, done.describe()


@pytest.mark.parametrize("thread", ["main", "thread"])
def test_fail_on_changes_the_status_only(thread, warm, tmp_path):
    bare = run(tmp_path, thread)
    done = run(tmp_path, thread, fail_on="error")
    assert (bare.returncode, done.returncode) == (0, 66), done.describe()
    assert done.stdout == bare.stdout, f"{bare.stdout}\n{done.describe()}"
    assert {"handler of C", "later handler of C", "handler of Python"} <= set(done.stdout.splitlines())
