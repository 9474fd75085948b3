"""scripts/check_tables.py: the tables in README.md and docs/ are what the program prints; a package is pinned once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(*arguments):
    return subprocess.run(
        [sys.executable, ROOT / "scripts/check_tables.py", *arguments], capture_output=True, text=True, timeout=60
    )


NAMES = ("options", "categories", "mechanisms", "formats", "thresholds", "evidence", "fixes", "slow", "faults",
         "signals")


def made_up(folder, rows):
    """A program that prints a table, and two documents with one row for each of its tables."""
    numsan = folder / "numsan"
    numsan.write_text('#!/bin/sh\n[ "$1" = table ] || exit 2\necho "| $2 | of the program |"\n')
    numsan.chmod(0o755)
    (folder / "docs" / "deep").mkdir(parents=True)
    documents = [folder / "README.md", folder / "docs" / "deep" / "tables.md"]
    for document, names in zip(documents, (NAMES[:1], NAMES[1:])):
        tables = (f"<!-- table {name} -->\n| {name} | {rows} |\n<!-- end table -->\ntext\n" for name in names)
        document.write_text("".join(tables))
    return documents, ("--numsan", numsan, "--root", folder)


def test_documents_of_this_tree():
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr


def test_same(tmp_path):
    _, arguments = made_up(tmp_path, "of the program")
    assert check(*arguments).returncode == 0


def test_different_then_written(tmp_path):
    documents, arguments = made_up(tmp_path, "of old")
    done = check(*arguments)
    assert done.returncode == 1
    assert "+| options | of the program |" in done.stdout and "+| mechanisms | of the program |" in done.stdout
    assert check(*arguments, "--write").returncode == 0
    assert check(*arguments).returncode == 0
    texts = "".join(document.read_text() for document in documents)
    assert texts.count("of the program") == len(NAMES) and texts.count("text\n") == len(NAMES)


@pytest.mark.parametrize("text, count", [("nothing here\n", 0), ("<!-- table options -->\n<!-- end table -->\n", 2)])
def test_a_table_has_one_place(tmp_path, text, count):
    documents, arguments = made_up(tmp_path, "of the program")
    if count:
        text += documents[0].read_text()
    documents[0].write_text(text)
    done = check(*arguments)
    assert done.returncode == 2
    assert "<!-- table options -->" in done.stdout and f"{count} times" in done.stdout


def test_no_program(tmp_path):
    _, arguments = made_up(tmp_path, "of the program")
    done = check(*arguments, "--numsan", tmp_path / "absent")
    assert done.returncode == 2 and "scripts/build" in done.stdout


def test_no_package_is_pinned_twice():
    pin = re.compile(r"^([A-Za-z0-9_.-]+)==[0-9]", re.MULTILINE)
    files = [*sorted((ROOT / "scripts").glob("*requirements.txt")), ROOT / "tests/requirements.txt"]
    pinned = [name.lower() for file in files for name in pin.findall(file.read_text())]
    assert pinned[0] == "torch"  # scripts/dependencies takes the first for it
    assert len(pinned) == len(set(pinned)), sorted(pinned)
