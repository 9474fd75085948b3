"""Records a program, replays the recording, and compares the two reports without asking the tool."""
import json
import subprocess
import time
from dataclasses import dataclass, field

import run_numsan


@dataclass
class Replayed:
    returncode: int
    stdout: str
    stderr: str
    report: dict | None
    seconds: float
    command: list = field(default_factory=list)

    def describe(self):
        return (f"command: {' '.join(map(str, self.command))}\nexit status: {self.returncode}\n"
                f"--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-4000:]}")


def replay(recording, folder=None, timeout=120):
    """`numsan replay`, in an environment that has neither numsan nor Python nor a path."""
    again = (folder or recording.parent) / f"{recording.name}.again.json"
    command = [str(run_numsan.COMMAND), "replay", str(recording), "--output", str(again)]
    started = time.monotonic()
    done = subprocess.run(command, env={"PATH": ""}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout)
    seconds = time.monotonic() - started
    return Replayed(done.returncode, done.stdout, done.stderr, run_numsan.read_report(again), seconds, command)


def comparable(report):
    """A report without times."""
    kept = json.loads(json.dumps(report))
    del kept["cost"]
    del kept["run"]["ended"]
    return kept
