"""The interpreter ends while a look-up's thread waits for its lock: Python ends that thread by pthread_exit().

    python3.N ended_look_up.py libstacks.so     needs no torch
"""
import ctypes
import sys
import threading
import time

import many_look_ups  # noqa: F401  its made-up torch
import walk

HELD = 1.6  # seconds; a look-up waits for its thread to begin for one


class Late:
    """Lets others have the lock while modules are torn down."""

    def __del__(self, sleep=time.sleep):
        for _ in range(20):
            sleep(0.01)


lib = walk.load(sys.argv[1])
walk.attach(lib)
threading.Thread(target=lambda: lib.stacks_look_up_later(300), daemon=True).start()
time.sleep(0.05)
sys.setswitchinterval(100)
ctypes.PyDLL(None).usleep(int(HELD * 1e6))  # with the lock
assert ctypes.PyDLL(sys.argv[1]).stacks_looking_up() == 1, "no look-up waits"
sys.late = Late()
