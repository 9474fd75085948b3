#!/usr/bin/env python3
"""Checks what no formatter enforces in a source: line width, length, trailing blanks, last newline, #pragma once, no
two Python modules of one name, Python that parses; and, where the root has a .clang-format, that the formatter would
leave the source as it is.

    scripts/check_style.py [ROOT]

Prints one line a violation, file:line first; exit status 1 when there is one.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

WIDEST = 120  # columns, what .clang-format sets
LONGEST = 400  # lines
LONGEST_TEST = 500  # of a file of tests: its cases, one after another
LONGER = {  # tables that are longer, and why they are one
    "host/cause/advice.def": "the first rows that fit are shown: their order is of all of them",
}
OLDEST_PYTHON = (3, 10)  # that runs interpose/python/scripts and host/replay

SUFFIXES = {".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".py", ".def", ".inc", ".S"}
HEADERS = {".h", ".hpp", ".cuh"}
TABLES = {".def", ".inc"}  # one entry a line: as wide as their facts are
SKIPPED = re.compile(r"\..*|build|build-.*|__pycache__")  # folders
LABEL = "# label: "  # a program of tests/suite says what is right about it: a table again

FORMATTER = "clang-format-14"  # another version formats otherwise
FORMATTED = {".cpp", ".c", ".h", ".cu", ".cuh"}

# Raw string literals of C++: in a test they are what a program prints, and may be as wide as that is.
RAW_STRING = re.compile(r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"', re.DOTALL)


def sources(root):
    """Paths below the root, relative to it, in order; none of build folders and hidden ones."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if not SKIPPED.fullmatch(name)]
        found += [(Path(folder) / name).relative_to(root) for name in names if Path(name).suffix in SUFFIXES]
    return sorted(found)


def lines_of_raw_strings(text):
    """Numbers of the lines on which some part of a raw string literal lies."""
    numbers = set()
    for match in RAW_STRING.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        numbers.update(range(first, first + match.group().count("\n") + 1))
    return numbers


def faults(path, text):
    """Yields (line, reason) for one source."""
    table = path.suffix in TABLES
    lines = text.split("\n")
    if lines[-1]:
        yield len(lines), "no newline at the end of the file"
    else:
        lines.pop()
    raw = lines_of_raw_strings(text) if path.parts[0] == "tests" and path.suffix != ".py" else set()
    for number, line in enumerate(lines, 1):
        if len(line) > WIDEST and not table and number not in raw and not line.startswith(LABEL):
            yield number, f"{len(line)} columns, at most {WIDEST}"
        if line != line.rstrip() and number not in raw:
            yield number, "blanks at the end of the line"
    most = LONGEST_TEST if path.parts[0] == "tests" else LONGEST
    if len(lines) > most and path.as_posix() not in LONGER:
        yield len(lines), f"{len(lines)} lines, at most {most}"
    if path.suffix in HEADERS and "#pragma once" not in lines:
        yield 1, "a header without #pragma once"
    if path.suffix == ".py":
        try:
            ast.parse(text, feature_version=OLDEST_PYTHON)
        except SyntaxError as error:
            yield error.lineno or 1, f"no Python {'.'.join(map(str, OLDEST_PYTHON))}: {error.msg}"


def namesakes(paths):
    """Yields (path, the earlier path) of Python modules that have one name: tests import by name, and whichever comes
    first on a worker's path would be had by both. Programs are never imported."""
    first = {}
    for path in paths:
        if path.suffix != ".py" or path.name == "conftest.py" or "programs" in path.parts:
            continue
        if first.setdefault(path.name, path) is not path:
            yield path, first[path.name]


def unformatted(root, paths):
    """Yields (path, line) where the formatter would change something; says so when there is no formatter."""
    wanted = [str(path) for path in paths if path.suffix in FORMATTED]
    if not wanted or not (root / ".clang-format").exists():
        return
    if shutil.which(FORMATTER) is None:
        print(f"style: formatting is not checked: {FORMATTER} is not installed (scripts/setup --tests installs it)")
        return
    done = subprocess.run([FORMATTER, "--dry-run", *wanted], cwd=root, capture_output=True, text=True)
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: (?:warning|error): ", done.stderr, re.MULTILINE):
        yield path, int(line)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    paths = sources(root)
    found = 0
    for path in paths:
        text = (root / path).read_bytes().decode(errors="replace")
        for line, reason in faults(path, text):
            print(f"{path.as_posix()}:{line}: {reason}")
            found += 1
    for path, earlier in namesakes(paths):
        print(f"{path.as_posix()}:1: {earlier.as_posix()} has the name, too: a test that imports it may get the other")
        found += 1
    for path, line in unformatted(root, paths):
        print(f"{path}:{line}: not as {FORMATTER} has it")
        found += 1
    print(f"style: {found} violations" if found else f"style: {len(paths)} sources, none too wide, too long or untidy")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
