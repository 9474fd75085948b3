"""A training loop with numsan attached under valgrind's memcheck: none of what it reports is ours.

Interpreter, torch and their libraries are not clean under memcheck (dozens of reports without numsan, too), so its
reports are sorted by who is at fault instead of being suppressed one by one. `import torch` alone takes it two minutes.
"""
import pathlib
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

import run_numsan

LOOP = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
for step in range(3):
    x = torch.rand(16, 4)
    loss = (model(x).squeeze(1) - x.sum(1)).square().mean()
    if step == 2:
        loss = loss + (x[:, 0] - 1).log().mean()  # BUG
    loss.backward()
    with torch.no_grad():  # by hand, as torch.optim imports as much again as torch does
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    print(step, loss.isfinite().item())
"""
OURS = "libnumsan"
# What these do wrong, they do with what their caller gave them. The loader (ld-linux) is not among them: it reads past
# the ends of its own strings.
BLAMELESS = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "vgpreload_")
MEMCHECK = ["valgrind", "-q", "--show-leak-kinds=none", "--xml=yes", "--num-callers=40"]

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")


def accused(report, ours):
    """(kind, what, functions) of every error in a report by memcheck that the library `ours` is at fault for: the
    access is its own, or it made or freed the block that somebody else missed."""
    found = []
    for error in xml.etree.ElementTree.parse(report).getroot().iter("error"):
        for stack in error.findall("stack"):
            frames = [(pathlib.Path(frame.findtext("obj") or "?").name, frame.findtext("fn"))
                      for frame in stack.iter("frame")]
            culprit = next((name for name, _ in frames if not name.startswith(BLAMELESS)), "")
            if culprit.startswith(ours):
                found.append((error.findtext("kind"), error.findtext("what"), [function for _, function in frames]))
    return found


@needs_valgrind
@pytest.mark.parametrize("mistake, kind", [("read_past_the_end", "InvalidRead"), ("clear_too_much", "InvalidWrite"),
                                           ("give_too_little", "InvalidRead"), ("none_of_the_library", None)])
def test_mistakes_are_accused(mistake, kind, tmp_path):
    """Of a library of a few lines, and not of the program that calls it."""
    library = tmp_path / "libmistaken.so"
    source = tmp_path / "library.c"
    source.write_text("""
        #include <stdlib.h>
        #include <string.h>
        static char* block(void) { return malloc(40); }
        int read_past_the_end(void) { char* at = block(); return at[40]; }
        int clear_too_much(void) { char* at = block(); memset(at, 0, 80); return *at; }
        char* give(void) { return block(); }
        """)
    program = tmp_path / "program.c"
    program.write_text("""
        #include <stdlib.h>
        #include <string.h>
        int read_past_the_end(void); int clear_too_much(void); char* give(void);
        int main(int argc, char** argv) {
            volatile int used = argc;
            if (!strcmp(argv[1], "read_past_the_end")) used = read_past_the_end();
            else if (!strcmp(argv[1], "clear_too_much")) used = clear_too_much();
            else if (!strcmp(argv[1], "give_too_little")) used = give()[41];
            else used = ((char*)malloc(1))[1];
            return used & 0;
        }""")
    subprocess.run(["cc", "-O0", "-shared", "-fPIC", source, "-o", library], check=True)
    subprocess.run(["cc", "-O0", program, library, "-o", tmp_path / "program", f"-Wl,-rpath,{tmp_path}"], check=True)
    report = tmp_path / "memcheck.xml"
    subprocess.run([*MEMCHECK, f"--xml-file={report}", tmp_path / "program", mistake], check=True, timeout=60)
    assert {found for found, *_ in accused(report, "libmistaken")} == ({kind} if kind else set())


@needs_valgrind
@pytest.mark.nightly
def test_attached_training_loop(warm, tmp_path):
    program = tmp_path / "loop.py"
    program.write_text(LOOP)
    report = tmp_path / "memcheck.xml"
    done = run_numsan.run_command([*MEMCHECK, f"--xml-file={report}", run_numsan.PYTHON, program], cwd=tmp_path,
                                  env={"PYTHONMALLOC": "malloc"}, timeout=900)
    assert (done.returncode, done.stdout) == (0, "0 True\n1 True\n2 False\n"), done.describe()
    assert [found["location"]["line"] for found in done.findings] == [run_numsan.marked_line(program)], done.describe()
    ours = accused(report, OURS)
    assert not ours, "\n".join(map(str, ours))
