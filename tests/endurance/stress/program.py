"""Random op programs on four threads at once, with forks, exceptions, collections in every mode and threads that come
and go; with `births` also values that go bad. What each thread computed is printed at the end and is always the same.

usage: program.py SEED PROGRAMS healthy|births    PROGRAMS is how many each thread runs
"""
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref

import torch

import random_ops
import random_training

THREADS = 4
FORKS = 0.1  # of a training's steps


class Cycle:
    """Garbage that only the collector frees, and that computes when it does."""

    def __init__(self):
        self.me, self.tensor = self, torch.ones(4)

    def __del__(self):
        self.tensor * 2  # in place it would be refused inside a transform of torch.func, whose garbage it may be


def collect(number, draw):
    """The collector in one of its modes; which, and when, is nothing that the results depend on."""
    mode = draw.randrange(7)
    if mode < 3:
        gc.collect(mode)
    elif mode == 3:
        gc.disable()
    elif mode == 4:
        gc.enable()
        gc.set_threshold(draw.choice((1, 50, 700)), draw.choice((1, 10)), draw.choice((1, 10)))
    elif mode == 5:
        gc.freeze()
        gc.unfreeze()
    else:
        weakref.finalize(Cycle(), int)


def program(draw, generator, with_births, forks):
    """One program; what it leaves, as text."""
    if draw.random() < 0.5:
        return random_training.train(draw, generator, with_births, forks)
    tensors = [torch.rand((random_ops.SIZE, random_ops.SIZE), generator=generator) for _ in range(5)]
    random_ops.run(draw, tensors, 40, with_births)
    return random_training.digest(tensors)


begun = []  # the native ids of the threads


def in_a_thread(work):
    """The result of `work`, which a thread of its own ran."""
    said = []
    thread = threading.Thread(target=lambda: said.append(work()))
    thread.start()
    begun.append(thread.native_id)
    thread.join()
    return said[0]


def wait_for_threads():
    """Until the system has none of them any more. join() returns before a thread has destroyed its thread_local
    objects; torch's ReadyQueue among them may hold a graph with saved tensor hooks, which takes the interpreter's lock
    in a destructor: where the interpreter is ending that terminates the process, with numsan or without."""
    late = time.monotonic() + random_training.PATIENCE
    while any(os.path.exists(f"/proc/self/task/{number}") for number in begun):
        assert time.monotonic() < late, "a thread that was joined does not end"
        time.sleep(0.01)


class Worker(threading.Thread):
    def __init__(self, seed, number, count, with_births):
        super().__init__(name=f"worker {number}")
        self.seed, self.number, self.count, self.with_births = seed, number, count, with_births
        self.said, self.error = [], None

    def run(self):
        try:
            for number in range(self.count):
                # strings seed Python's generator alike in every process
                draw = random.Random(f"{self.seed} {self.number} {number}")
                generator = torch.Generator().manual_seed(draw.randrange(2 ** 31))
                work = lambda: program(draw, generator, self.with_births, FORKS)  # noqa: E731
                self.said.append(in_a_thread(work) if draw.random() < 0.3 else work())
                collect(self.number, draw)
        except BaseException as error:
            self.error = error
            raise


def leave(draw):
    """A forked child of the main thread that trains and ends as an interpreter does."""
    child = os.fork()
    if child == 0:
        random_training.abort_if_it_hangs()
        generator = torch.Generator().manual_seed(7)
        random_training.train(draw, generator, False, None)
        gc.collect()
        sys.exit(3)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def warm_up():
    """Imports what torch imports late: a child that is forked while another thread imports may wait for ever, with
    numsan or without."""
    import torch._dynamo  # noqa: F401  every optimizer's first step
    random_ops.warm_up()
    random_training.warm_up()
    for number in range(30):
        draw, generator = random.Random(f"warm {number}"), torch.Generator().manual_seed(number)
        program(draw, generator, False, 0)


def main(seed, count, with_births):
    faulthandler.enable()  # who ends a program that hangs does it by SIGABRT
    warnings.simplefilter("ignore")  # of torch's, about reentrant checkpoints without a gradient
    torch.manual_seed(seed)
    warm_up()
    caught = []
    signal.signal(signal.SIGPROF, lambda *_: caught.append(1))
    signal.setitimer(signal.ITIMER_PROF, 0.02, 0.02)
    workers = [Worker(seed, number, count, with_births) for number in range(THREADS)]
    for worker in workers:
        worker.start()
        begun.append(worker.native_id)
    draw = random.Random(f"{seed} main")
    try:
        for _ in range(2 + count // 40):
            assert in_a_thread(lambda: (torch.ones(3) * 2).sum().item()) == 6
            assert subprocess.run(["true"]).returncode == 0
            ended = leave(draw)
            assert ended == 3, f"a forked child ended with {ended}"
            collect(-1, draw)
        for worker in workers:
            worker.join()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)  # while the interpreter ends it would be the end of the process
        wait_for_threads()
    if any(worker.error for worker in workers):
        return 1
    for worker in workers:
        for number, text in enumerate(worker.said):
            print(worker.number, number, text)
    print("random of torch", random_training.digest([torch.get_rng_state()]))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "births"))
