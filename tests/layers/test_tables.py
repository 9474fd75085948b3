"""scripts/check_tables.py: README's tables are the program's own; and each Python package is pinned once."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def check(*arguments):
    return subprocess.run(
        [sys.executable, ROOT / "scripts/check_tables.py", *arguments], capture_output=True, text=True, timeout=60
    )


def made_up(folder, rows):
    """A program that prints a table, and a readme with one row for each of its three tables."""
    numsan = folder / "numsan"
    numsan.write_text('#!/bin/sh\n[ "$1" = table ] || exit 2\necho "| $2 | of the program |"\n')
    numsan.chmod(0o755)
    readme = folder / "README.md"
    names = ("options", "categories", "mechanisms")
    readme.write_text("".join(f"<!-- table {n} -->\n| {n} | {rows} |\n<!-- end table -->\ntext\n" for n in names))
    return readme, ("--numsan", numsan, "--readme", readme)


def test_readme_of_this_tree():
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr


def test_same(tmp_path):
    _, arguments = made_up(tmp_path, "of the program")
    assert check(*arguments).returncode == 0


def test_different_then_written(tmp_path):
    readme, arguments = made_up(tmp_path, "of old")
    done = check(*arguments)
    assert done.returncode == 1
    assert "+| options | of the program |" in done.stdout
    assert check(*arguments, "--write").returncode == 0
    assert check(*arguments).returncode == 0
    assert readme.read_text().count("of the program") == 3 and readme.read_text().count("text\n") == 3


def test_no_marker(tmp_path):
    readme, arguments = made_up(tmp_path, "of the program")
    readme.write_text("nothing here\n")
    done = check(*arguments)
    assert done.returncode == 2 and "<!-- table options -->" in done.stdout


def test_no_program(tmp_path):
    _, arguments = made_up(tmp_path, "of the program")
    done = check(*arguments, "--numsan", tmp_path / "absent")
    assert done.returncode == 2 and "scripts/build" in done.stdout


def test_no_package_is_pinned_twice():
    pin = re.compile(r"^([A-Za-z0-9_.-]+)==[0-9]", re.MULTILINE)
    files = [ROOT / "scripts/requirements.txt", ROOT / "tests/requirements.txt", ROOT / "scripts/dependencies"]
    pinned = [name.lower() for file in files for name in pin.findall(file.read_text())]
    assert pinned[0] == "torch"  # scripts/dependencies takes the first for it
    assert len(pinned) == len(set(pinned)), sorted(pinned)
