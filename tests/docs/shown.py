"""What README.md, ARCHITECTURE.md and docs/ show in fences: commands, programs and what they print."""
import re
from dataclasses import dataclass

from run_numsan import REPO

DOCUMENTS = [REPO / "README.md", REPO / "ARCHITECTURE.md", *sorted((REPO / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command in a fence without a language would be missed.
LANGUAGES = {"sh", "python", "text", "bash", "yaml", "dockerfile", "toml"}


@dataclass
class Fence:
    language: str
    text: str
    line: int  # of the fence's first mark
    follows: bool  # nothing but blanks is between it and the fence before


@dataclass
class Command:
    text: str
    statuses: list  # exit statuses that its comment allows; 0 without one


def fences(document):
    text = document.read_text()
    found, end = [], 0
    for match in FENCE.finditer(text):
        found.append(Fence(match[1], match[2], text.count("\n", 0, match.start()) + 1,
                           bool(found) and not text[end:match.start()].strip()))
        end = match.end()
    return found


def commands(fence):
    """One command a line. A comment may say `exit status 66` or `exit status 0 or 1`."""
    found = []
    for line in fence.text.replace("\\\n", " ").splitlines():
        text, _, comment = line.partition(" #")
        if not text.strip() or text.startswith("#"):
            continue
        said = re.search(r"exit status (\d+)(?: or (\d+))?", comment)
        found.append(Command(text.strip(), [int(one) for one in said.groups() if one] if said else [0]))
    return found


def name_of(document):
    return document.relative_to(REPO).as_posix()
