"""A debugger of its own, for PYTHONBREAKPOINT: it says where it is and what it sees, and lets the program go on."""
import sys


def stop():
    frame = sys._getframe(1)
    stopped = __builtins__["_numsan"]
    print("named:", frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)[:3], stopped.finding["code"],
          [tuple(value.shape) if hasattr(value, "shape") else len(value) for value in stopped.outputs], flush=True)
