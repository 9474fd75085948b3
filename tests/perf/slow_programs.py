"""The slow programs of tests/perf/programs and their cured twins: which there are, and how they are run."""
import json
import pathlib
from dataclasses import dataclass

import device_environment
import run_numsan

FOLDER = pathlib.Path(__file__).resolve().parent / "programs"
MARK = "# SLOW"
DEVICE, FAKE = 'torch.device("cuda")', 'torch.device("fakegpu")'


@dataclass
class SlowProgram:
    """One folder: slow.py, whose slow line ends with the mark, and cured.py."""
    name: str
    code: str | None  # of the finding; None where numsan has none for its cause
    cause: str
    on_device: bool

    def path(self, kind):
        return FOLDER / self.name / f"{kind}.py"

    def written(self, kind, folder):
        """The program as it is run: one for a GPU is moved to the test device, in as many lines."""
        if not self.on_device:
            return self.path(kind)
        text = self.path(kind).read_text().replace("\nimport torch\n", "\nimport fakegpu, torch\n")
        moved = pathlib.Path(folder) / f"{self.name}_{kind}.py"
        moved.write_text(text.replace(DEVICE, FAKE))
        return moved

    def line(self):
        return run_numsan.marked_line(self.path("slow"), MARK)


def slow_programs():
    """All, in the order of their causes."""
    found = []
    for expected in FOLDER.glob("*/expect.json"):
        known = json.loads(expected.read_text())
        on_device = DEVICE in (expected.parent / "slow.py").read_text()
        found.append(SlowProgram(expected.parent.name, known["code"], known["cause"], on_device))
    return sorted(found, key=lambda one: (one.code or "NP9", one.cause, one.name))


def environment_of_device():
    """What a program on the test device needs, and how long the device takes for an op."""
    return {**device_environment.of_test_device(device_environment.PRELUDE), "FAKEGPU_DELAY_US": "200"}


def said_slow(report):
    """[(code, file, line, share)] of a report, costliest first."""
    return [(one["code"], (one["location"] or {}).get("file", ""), (one["location"] or {}).get("line"), one["share"])
            for one in report["performance"]["findings"]]
