"""A process forks while names are looked up, each by a thread of its own, whose Python state begins and ends meanwhile.

    python3.N forks_beside_look_ups.py libstacks.so

Prints how many children have ended, and how many look-ups found the module.
"""
import os
import signal
import sys
import threading
import time

import many_look_ups  # noqa: F401  makes up a torch
import walk

SECONDS = 4
PATIENCE = 10  # seconds for a child that does nothing


def child_ends():
    child = os.fork()
    if child == 0:
        os._exit(0)
    late = time.monotonic() + PATIENCE
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > late:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.001)
    return True


def main(path):
    lib = walk.load(path)
    walk.attach(lib)
    end = time.monotonic() + SECONDS
    found, forks = [], 0

    def look_up():
        while time.monotonic() < end:
            found.append(lib.stacks_look_ups(20))

    threads = [threading.Thread(target=look_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        forks += 1
        assert child_ends(), f"child {forks} has not ended within {PATIENCE} s; {sum(found)} look-ups"
    for thread in threads:
        thread.join()
    print(forks, sum(found))


if __name__ == "__main__":
    main(sys.argv[1])
