"""The programs on the pages of `numsan explain` on training faults: the first has the fault, mended it has none."""
import re
import subprocess
import textwrap

import pytest

import run_numsan

pytestmark = pytest.mark.xdist_group("diagnose")  # one worker has the process of which they are forks
ROWS = re.findall(r'NUMSAN_FAULT\("(ND\d+)", \w+, "([\w-]+)"',
                  (run_numsan.REPO / "host" / "diagnosis" / "faults.def").read_text())
OPTIONS = {"diagnose": 1}


def page_of(word):
    done = subprocess.run([run_numsan.COMMAND, "explain", word], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_section(code, heading, folder):
    found = re.search(rf"^{heading}\n((?:    .*\n|\n)+)", page_of(code), re.MULTILINE)
    assert found, f"no program under '{heading}'"
    program = folder / "page.py"
    program.write_text(textwrap.dedent(found.group(1)).strip() + "\n")
    return program, run_numsan.run_watched_fork(program, options=OPTIONS, cwd=folder)


def test_there_is_a_page_for_each():
    assert len(ROWS) >= 5
    for code, slug in ROWS:
        assert page_of(code) == page_of(slug)
        assert page_of(code).startswith(f"{code} {slug}: ")


@pytest.mark.parametrize("code", [code for code, _ in ROWS])
def test_program_has_the_fault_where_it_says(code, warm, tmp_path):
    program, done = run_section(code, "a program that has it", tmp_path)
    here, = [number for number, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# here")]
    assert done.returncode == 0 and done.report is not None, done.describe()
    found = [(one["code"], one["location"]["line"]) for one in done.report["diagnosis"]["faults"]]
    assert found[:1] == [(code, here)], f"{found}\n{done.describe()}"


@pytest.mark.parametrize("code", [code for code, _ in ROWS])
def test_mended_program_is_silent(code, warm, tmp_path):
    _, done = run_section(code, "the same program, healthy", tmp_path)
    assert (done.returncode, done.stderr, done.report) == (0, "", None), done.describe()
