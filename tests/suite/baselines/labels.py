"""Reads the `# label:` lines of suite programs."""
import pathlib
import re

SUITE = pathlib.Path(__file__).resolve().parent.parent


def read_labels(path):
    """All key=value pairs of the label lines of one program, as text."""
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("# label:"):
            found.update(re.findall(r"(\w+)=(\S*)", line))
    return found


def suite_programs(folder="programs"):
    """Paths of the programs, or controls, of the suite, in order."""
    return sorted((SUITE / folder).glob("[pq][0-9][0-9]_*.py"))
