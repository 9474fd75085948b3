"""scripts/check_layers.py: the tree obeys its layers, and a tree that does not is told so."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]


def check(root):
    return subprocess.run(
        [sys.executable, ROOT / "scripts/check_layers.py", root], capture_output=True, text=True, timeout=60
    )


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_this_tree():
    done = check(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "path, include",
    [
        ("host/base/a.h", '"host/scan/cpu.h"'),
        ("host/scan/a.cpp", '"host/options/options.h"'),
        ("host/verdict/a.cpp", '"host/report/json.h"'),
        ("host/report/a.cpp", '"host/session/session.h"'),
        ("host/session/a.cpp", '"interpose/runtime/core.h"'),
        ("host/cli/a.cpp", '"host/session/session.h"'),
        ("host/cli/a.cpp", '"host/stacks/stack_source.h"'),
        ("host/session/a.cpp", '"../cli/run.h"'),
        ("interpose/torch/a.cpp", '"host/session/session.h"'),
        ("interpose/python/a.cpp", '"host/finding/finding.h"'),
        ("interpose/python/a.cpp", "<Python.h>"),
        ("interpose/preload/a.c", '"host/base/dtype.h"'),
        ("interpose/preload/a.c", '"interpose/runtime/core.h"'),
        ("interpose/preload/a.cpp", "<vector>"),
        ("host/session/a.cpp", "<ATen/ATen.h>"),
        ("host/verdict/a.cpp", "<nlohmann/json.hpp>"),
        ("host/base/a.h", '"host/elsewhere/a.h"'),
    ],
)
def test_wrong_direction(tmp_path, path, include):
    write(tmp_path, "host/cli/run.h", "")
    write(tmp_path, path, f"// a comment\n#include {include}\n")
    done = check(tmp_path)
    assert done.returncode == 1, done.stdout
    assert f"{path}:2: {include[1:-1]}: " in done.stdout


@pytest.mark.parametrize(
    "path, include",
    [
        ("host/scan/a.cpp", '"host/base/scanner.h"'),
        ("host/scan/a.cpp", "<vector>"),
        ("host/scan/a.cpp", '"b.h"'),
        ("host/report/a.cpp", "<nlohmann/json.hpp>"),
        ("host/session/a.cpp", '"host/report/json.h"'),
        ("host/cli/a.cpp", '"host/report/text.h"'),
        ("interpose/runtime/a.cpp", '"host/session/session.h"'),
        ("interpose/torch/a.cpp", "<ATen/core/dispatch/Dispatcher.h>"),
        ("interpose/preload/a.c", '"interpose/runtime/stub_abi.h"'),
        ("interpose/preload/a.c", "<sys/mman.h>"),
    ],
)
def test_right_direction(tmp_path, path, include):
    write(tmp_path, "host/scan/b.h", "")
    write(tmp_path, path, f"#include {include}\n")
    done = check(tmp_path)
    assert done.returncode == 0, done.stdout


def test_folder_in_no_layer(tmp_path):
    write(tmp_path, "host/elsewhere/a.cpp", "")
    done = check(tmp_path)
    assert done.returncode == 1
    assert "host/elsewhere/a.cpp: in no layer" in done.stdout


def test_circle_of_files(tmp_path):
    write(tmp_path, "host/scan/a.h", '#include "host/scan/b.h"\n')
    write(tmp_path, "host/scan/b.cpp", '#include "host/scan/c.h"\n')  # header and source are one part
    write(tmp_path, "host/scan/b.h", "")
    write(tmp_path, "host/scan/c.h", "")
    assert check(tmp_path).returncode == 0
    write(tmp_path, "host/scan/c.h", '#include "host/scan/a.h"\n')
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("a circle of includes: host/scan/a, host/scan/b, host/scan/c\n")


def test_full_folder(tmp_path):
    for i in range(26):
        write(tmp_path, f"host/scan/a{i}.h", "")
    done = check(tmp_path)
    assert done.returncode == 1
    assert "host/scan: 26 files, at most 25" in done.stdout
