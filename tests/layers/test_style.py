"""scripts/check_style.py: the tree is tidy, and a tree that is not is told file and line."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(root):
    return subprocess.run(
        [sys.executable, ROOT / "scripts/check_style.py", root], capture_output=True, text=True, timeout=60
    )


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_this_tree():
    done = check(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "path, text, said",
    [
        ("host/a.cpp", "\n" + "x" * 121 + "\n", "2: 121 columns, at most 120"),
        ("host/a.py", "#" + "x" * 120 + "\n", "1: 121 columns, at most 120"),
        ("host/a.cpp", 'auto a = R"(' + "x" * 120 + ')";\n', "1: 135 columns, at most 120"),
        ("cuda/a.cu", "x\n" * 401, "401: 401 lines, at most 400"),
        ("host/a.def", "x\n" * 401, "401: 401 lines, at most 400"),
        ("tests/a.py", "x = 1\n" * 501, "501: 501 lines, at most 500"),
        ("interpose/python/scripts/a.py", "x = 1\nx = = 1\n", "2: no Python 3.10: invalid syntax"),
        ("cuda/a.cuh", "#pragma once\nx \n", "2: blanks at the end of the line"),
        ("host/a.def", "x\t\n", "1: blanks at the end of the line"),
        ("interpose/a.c", "x\ny", "2: no newline at the end of the file"),
        ("host/a.h", "// #pragma once\n", "1: a header without #pragma once"),
    ],
)
def test_untidy(tmp_path, path, text, said):
    write(tmp_path, path, text)
    done = check(tmp_path)
    assert done.returncode == 1, done.stdout
    assert f"{path}:{said}\n" in done.stdout


@pytest.mark.parametrize(
    "path, text",
    [
        ("host/a.cpp", "x" * 120 + "\n" * 400),
        ("tests/host/a_test.cpp", "x\n" * 500),
        ("host/cause/advice.def", "x\n" * 600),  # there is a reason
        ("host/a.cpp", "// " + "\N{MULTIPLICATION SIGN}" * 117 + "\n"),  # columns, not bytes
        ("host/a.def", "x" * 200 + "\n" * 400),
        ("host/a.h", "// what it is for\n#pragma once\n"),
        ("host/a.cpp", ""),
        ("tests/host/a_test.cpp", 'auto a = R"json(\n' + "x" * 200 + ' \n)json";\n'),
        ("tests/suite/programs/p00_a.py", "# label: " + "x" * 200 + "\n"),
        ("build-asan/a.cpp", "x" * 200),
        (".venv/a.py", "x" * 200),
        ("host/a.txt", "x" * 200),
    ],
)
def test_tidy(tmp_path, path, text):
    write(tmp_path, path, text)
    done = check(tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("clang-format-14") is None, reason="clang-format-14 is not installed")
@pytest.mark.parametrize("text, status", [("int a;\n", 0), ("int a;\nint  b;\n", 1)])
def test_format(tmp_path, text, status):
    write(tmp_path, ".clang-format", "BasedOnStyle: Google\n")
    write(tmp_path, "host/cli/a.cpp", text)
    done = check(tmp_path)
    assert done.returncode == status, done.stdout
    assert ("host/cli/a.cpp:2: not as clang-format-14 has it\n" in done.stdout) == bool(status)
