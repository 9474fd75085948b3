"""Measuring by turns: what is compared runs alternately in one run, so that a slow phase of the machine hits all."""
import os
import subprocess

TURNS = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    steps = int(line)
    started = time.perf_counter()
    for _ in range(steps): step()
    print((time.perf_counter() - started) / steps, flush=True)
"""


class DidNotStart(Exception):
    """A program that was to be measured ended before its first turn; the text is the end of its stderr."""


def environment(preload, options=""):
    """Ours, less what would attach numsan; with `preload` (libnumsan.so), attached."""
    kept = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "NUMSAN_OPTIONS")}
    return {**kept, "LD_PRELOAD": str(preload), "NUMSAN_OPTIONS": options} if preload else kept


class Worker:
    """A process that has warmed up and waits for its turns: it prints `ready`, then one answer to each line."""

    def __init__(self, command, env, folder=None, stderr=None):
        self.process = subprocess.Popen(list(map(str, command)), cwd=folder, env=env, text=True, stderr=stderr,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def await_ready(self):
        if self.process.stdout.readline() != "ready\n":
            said = self.process.communicate()[1] or "it said nothing"
            raise DidNotStart(said[-2000:])
        return self

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise DidNotStart((self.process.communicate()[1] or "it ended in a turn")[-2000:])
        return answer

    def turn(self, steps):
        """Seconds per step."""
        return float(self.ask(steps))

    def end(self):
        """(exit status, stderr if it was kept)."""
        _, stderr = self.process.communicate()
        return self.process.returncode, stderr

    def kill(self):
        self.process.kill()
        self.process.communicate()


def spread(values):
    """Median and quartiles as they occur among the values."""
    ordered = sorted(values)
    last = len(ordered) - 1
    middle = (ordered[last // 2] + ordered[(last + 1) // 2]) / 2
    return {"median": middle, "low": ordered[len(ordered) // 4], "high": ordered[last - len(ordered) // 4],
            "turns": len(ordered)}


def ratios(values, base):
    """The spread of each turn's ratio to the base's turn just before it."""
    return spread([one / other for one, other in zip(values, base, strict=True)])
