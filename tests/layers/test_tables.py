"""scripts/check_tables.py: README's tables are the program's own; and the two files that pin Python packages agree."""

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


def test_pinned_versions_agree():
    pin = re.compile(r'^\s*(?:\w+=)?"?([A-Za-z0-9_.-]+)==([0-9][^"\s#]*)"?', re.MULTILINE)
    ours = dict(pin.findall((ROOT / "scripts/dependencies").read_text()))
    theirs = dict(pin.findall((ROOT / "tests/requirements.txt").read_text()))
    assert "torch" in ours
    different = {name: (ours[name], theirs[name]) for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    assert not different
