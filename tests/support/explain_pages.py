"""Pages of `numsan explain` and the programs on them."""
import re
import subprocess
import textwrap

import run_numsan

SECTION = r"^{}\n((?:    .*\n|\n)+)"
SICK, HEALTHY = "a program that has it", "the same program, healthy"


def page_of(word):
    """A page as `numsan explain` prints it."""
    done = subprocess.run([run_numsan.COMMAND, "explain", word], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def section_of(page, heading):
    """What a page says under a heading, without its indentation; empty without such a heading."""
    found = re.search(SECTION.format(re.escape(heading)), page, re.MULTILINE)
    return textwrap.dedent(found.group(1)).strip() + "\n" if found else ""


def program_of(page, heading):
    """The program under a heading."""
    program = section_of(page, heading)
    assert program.startswith("import "), f"no program under '{heading}'\n{page}"
    return program
