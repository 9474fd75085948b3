"""Programs that live by signals train as they would without numsan: handlers in Python and in C, timers, an alternate
stack, faulthandler. What a program prints is compared with its own run without numsan."""
import re
import signal
import subprocess

import pytest

import run_numsan

# An optimizer would import torch's compiler in each process.
TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

def train(enough, least=30):
    # until enough() is true, which no clock decides alone: a slow machine trains longer
    step = 0
    while step < least or not enough():
        torch.manual_seed(step % least)
        x = torch.rand(16, 8)
        loss = (model(x).squeeze(1) - x.sum(1)).square().mean()
        model.zero_grad()
        loss.backward()
        if step < least:  # the rest is for the clock: it must not show
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.01 * p.grad
        step += 1
    print(*(float(p.detach().sum()).hex() for p in model.parameters()))
"""

PYTHON_HANDLERS = """
import signal
seen = dict.fromkeys((signal.SIGUSR1, signal.SIGALRM, signal.SIGPROF, signal.SIGVTALRM), 0)
def handler(number, frame):
    seen[number] += 1
for number in seen:
    signal.signal(number, handler)
signal.signal(signal.SIGSEGV, handler)
""" + TRAIN + """
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
def enough():
    signal.raise_signal(signal.SIGUSR1)
    return min(seen.values()) >= 5
train(enough)
for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF, signal.ITIMER_VIRTUAL):
    print(signal.setitimer(timer, 0)[1])
print([signal.getsignal(number) is handler for number in (*seen, signal.SIGSEGV)])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""

# A handler that mends what faulted, and one that a timer calls, both on the program's own stack.
C_HANDLERS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { kStack = 1 << 16, kPage = 4096 };
static char* stack;
static char* page;
static pid_t thread;  /* whose stack it is: a timer's signal may go to another, which has none */
static volatile int faults, ticks, elsewhere;

static void note(volatile int* count) {
    char here;
    ++*count;
    if (gettid() == thread && (&here < stack || &here >= stack + kStack)) ++elsewhere;
}
static void on_fault(int number, siginfo_t* info, void* context) {
    (void)number; (void)context;
    note(&faults);
    if ((char*)info->si_addr < page || (char*)info->si_addr >= page + kPage) abort();
    mprotect(page, kPage, PROT_READ | PROT_WRITE);
}
static void on_tick(int number, siginfo_t* info, void* context) {
    (void)number; (void)info; (void)context;
    note(&ticks);
}
int start(void) {
    thread = gettid();
    stack = malloc(kStack);
    page = mmap(0, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t alternate = {.ss_sp = stack, .ss_size = kStack};
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction tick = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    struct itimerval period = {{0, 1000}, {0, 1000}};
    return sigaltstack(&alternate, 0) | sigaction(SIGSEGV, &fault, 0) | sigaction(SIGALRM, &tick, 0) |
           setitimer(ITIMER_REAL, &period, 0);
}
int fault(void) {
    mprotect(page, kPage, PROT_NONE);
    *(volatile char*)page = 1;
    return faults;
}
int tick_count(void) { return ticks; }
/* Bits: the stack, a handler or the period is another one; a handler ran elsewhere. */
int changed(void) {
    stack_t alternate;
    struct sigaction fault, tick;
    struct itimerval period;
    sigaltstack(0, &alternate);
    sigaction(SIGSEGV, 0, &fault);
    sigaction(SIGALRM, 0, &tick);
    getitimer(ITIMER_REAL, &period);
    return (alternate.ss_sp != stack) | (fault.sa_sigaction != on_fault) << 1 | (tick.sa_sigaction != on_tick) << 2 |
           (period.it_interval.tv_usec != 1000) << 3 | (elsewhere != 0) << 4;
}
"""
USES_C_HANDLERS = """
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
print(library.start())
""" + TRAIN + """
faults = 0
def enough():
    global faults
    faults += 1
    assert library.fault() == faults
    return library.tick_count() >= 20
train(enough)
print(library.changed())
"""

FAULTHANDLER = """
import faulthandler, os, signal, sys
faulthandler.enable()
faulthandler.register(signal.SIGUSR1, file=sys.stdout, all_threads=False)
""" + TRAIN + """
def enough():
    return True
train(enough)
sys.stdout.flush()
signal.raise_signal(signal.SIGUSR1)
print(faulthandler.is_enabled(), flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""

KILLED = """
import os, signal, threading
""" + TRAIN + """
poisoned = torch.nn.Parameter(torch.zeros(1))
with torch.no_grad():
    poisoned.add_(torch.tensor([-1.0]).log())  # BUG
trains = threading.Event()
threading.Thread(target=lambda: (trains.wait(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
train(trains.set)  # until it is ended in whatever op it is
"""


def both(program, tmp_path, text, args=()):
    """(without numsan, with numsan) of a program of this text."""
    program = tmp_path / program
    program.write_text(text)
    folders = tmp_path / "plain", tmp_path / "watched"
    for folder in folders:
        folder.mkdir()
    plain = run_numsan.run_plain(program, args=args, cwd=folders[0])
    return plain, run_numsan.run(program, args=args, cwd=folders[1])


def without_addresses(text):
    return re.sub(r"0x[0-9a-f]{16}", "0x", text)


def test_handlers_and_timers_in_python(warm, tmp_path):
    plain, watched = both("handlers.py", tmp_path, PYTHON_HANDLERS)
    assert plain.returncode == 0 and plain.stdout.count("True") == 5, plain.describe()
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, plain.stdout, ""), watched.describe()
    assert watched.report["coverage"]["ops"] > 0 and watched.findings == [], watched.describe()


def test_handlers_in_c_on_their_own_stack(warm, tmp_path):
    source, library = tmp_path / "handlers.c", tmp_path / "handlers.so"
    source.write_text(C_HANDLERS)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    plain, watched = both("handlers.py", tmp_path, USES_C_HANDLERS, [str(library)])
    assert plain.returncode == 0 and plain.stdout.endswith("\n0\n"), plain.describe()
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, plain.stdout, ""), watched.describe()
    assert watched.report["coverage"]["ops"] > 0 and watched.findings == [], watched.describe()


def test_faulthandler(warm, tmp_path):
    plain, watched = both("faults.py", tmp_path, FAULTHANDLER)
    assert plain.returncode == -signal.SIGSEGV and "in <module>" in plain.stdout, plain.describe()
    assert "Fatal Python error: Segmentation fault" in plain.stderr, plain.describe()
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout), watched.describe()
    assert without_addresses(watched.stderr) == without_addresses(plain.stderr), watched.describe()


def test_terminated_while_it_trains(warm, tmp_path):
    plain, watched = both("killed.py", tmp_path, KILLED)
    assert (plain.returncode, plain.stdout) == (-signal.SIGTERM, ""), plain.describe()
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout), watched.describe()
    run_numsan.validate(watched.report)
    lines = [found["location"]["line"] for found in watched.findings]
    assert lines == [run_numsan.marked_line(tmp_path / "killed.py")], watched.describe()
