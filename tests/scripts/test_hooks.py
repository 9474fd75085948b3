"""scripts/hooks/pre-commit in a repository of its own: it looks at what is staged, and nothing else."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
TABLES = "".join(f"<!-- table {name} -->\n| {name} |\n<!-- end table -->\n"
                 for name in ("options", "categories", "mechanisms", "thresholds", "formats", "evidence", "fixes",
                              "slow", "faults", "signals"))


@pytest.fixture
def repository(tmp_path):
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "README.md").write_text(TABLES)
    (tmp_path / "host/base").mkdir(parents=True)
    (tmp_path / "host/base/good.h").write_text("#pragma once\n")
    (tmp_path / ".gitignore").write_text("build/\n__pycache__/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    git(tmp_path, "config", "core.hooksPath", "scripts/hooks")
    return tmp_path


def git(folder, *arguments, ok=True):
    done = subprocess.run([*GIT, *arguments], cwd=folder, capture_output=True, text=True)
    assert (done.returncode == 0) == ok, done
    return done.stdout + done.stderr


def add(repository, path, text):
    (repository / path).parent.mkdir(parents=True, exist_ok=True)
    (repository / path).write_text(text)
    git(repository, "add", path)


def count(repository):
    return int(git(repository, "rev-list", "--count", "HEAD"))


def test_clean_change_is_committed(repository):
    add(repository, "host/base/more.h", "#pragma once\n")
    said = git(repository, "commit", "-m", "more")
    assert "tables: not checked: build/bin/numsan is missing" in said, said
    assert count(repository) == 2


@pytest.mark.parametrize("path, text, words", [
    ("host/base/up.h", '#pragma once\n#include "host/session/session.h"\n', "may not include host/session"),
    ("host/base/wide.h", "#pragma once\n//" + 120 * "x" + "\n", "122 columns"),
    ("tests/programs/stub/victim.py", 'raise SystemExit("FILL IN: a program")\n', "still to be filled in"),
])
def test_bad_change_is_not(repository, path, text, words):
    add(repository, path, text)
    said = git(repository, "commit", "-m", "bad", ok=False)
    assert words in said and path in said and "nothing was committed" in said, said
    assert count(repository) == 1


def test_tables_are_those_of_the_build(repository):
    numsan = repository / "build/bin/numsan"
    numsan.parent.mkdir(parents=True)
    numsan.write_text('#!/bin/sh\necho "| $2 |"\n')
    numsan.chmod(0o755)
    add(repository, "host/base/more.h", "#pragma once\n")
    git(repository, "commit", "-m", "more")
    add(repository, "README.md", TABLES.replace("| options |", "| option |"))
    assert "tables: different" in git(repository, "commit", "-m", "bad", ok=False)


def test_what_is_not_staged_is_not_looked_at(repository):
    add(repository, "host/base/more.h", "#pragma once\n")
    (repository / "host/base/more.h").write_text("blanks  \n")
    (repository / "host/base/unstaged.h").write_text("no newline")
    git(repository, "commit", "-m", "more")
    add(repository, "host/base/third.h", "blanks  \n")
    (repository / "host/base/third.h").write_text("#pragma once\n")
    assert "blanks at the end" in git(repository, "commit", "-m", "bad", ok=False)
