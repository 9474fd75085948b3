"""A training under pdb, a trace function, a profile function and, where there is one, sys.monitoring; each says how
often it saw which line of small_training.py."""
import collections
import io
import pdb
import sys
import threading

import small_training

FILE = small_training.__file__
seen = collections.Counter()


def of_the_training(code):
    return code.co_filename == FILE


def trace(frame, event, argument):
    if not of_the_training(frame.f_code):
        return None
    seen["trace", event, frame.f_lineno] += 1
    return trace


def profile(frame, event, argument):
    if of_the_training(frame.f_code):
        seen["profile", event, frame.f_lineno] += 1


def monitor():
    """Lines by sys.monitoring, which Python has since 3.12."""
    if not hasattr(sys, "monitoring"):
        return
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(3, "test")

    def line(code, number):
        if of_the_training(code):
            seen["monitoring", "line", number] += 1

    sys.monitoring.register_callback(3, events.LINE, line)
    sys.monitoring.set_events(3, events.LINE)


training = small_training.Training()
debugger = pdb.Pdb(stdin=io.StringIO("step\nnext\nnext\nwhere\np loss\nc\n"), stdout=io.StringIO(), nosigint=True)
debugger.runcall(training.steps, 2)
sys.settrace(None)
monitor()
threading.settrace(trace)
threading.setprofile(profile)
thread = threading.Thread(target=training.steps, args=(6,))
thread.start()
thread.join()
sys.settrace(trace)
sys.setprofile(profile)
small_training.show_and_go_bad(training.steps(6))
sys.settrace(None)
sys.setprofile(None)
for key, count in sorted(seen.items()):
    print(*key, count)
