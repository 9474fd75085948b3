"""The source line of code that lies in no file: `python -c`, stdin, an archive, what a program compiles by a name. What
Python keeps no text of is said to be without."""
import zipfile

import run_numsan

# A value that is read is a finding at once; one in a gradient is found at the end, by its forward line.
COMMAND = """
import linecache, sys, torch
x = -torch.ones(2)
def read(value):
    value.log().sum().item()  # BUG of the command

read(x)
exec("\\n\\n\\nfor i in [1]:\\n    x.log2().sum().item()")
text = "def made(value):\\n    value.log10().sum().item()  # BUG of what was made\\n"
linecache.cache["<made>"] = (len(text), None, text.splitlines(True), "<made>")
exec(compile(text, "<made>", "exec"))
made(x)
exec(compile("x.log1p().sqrt().sum().item()", "<unknown>", "exec"))
sys.path.insert(0, "archive.zip")
import archived
archived.read(x)
w = torch.nn.Parameter(x)
(w * 1).sqrt().sum().backward()  # BUG at the end
"""
STDIN = """
import torch
def read(value):
    value.log().sum().item()  # BUG

read(-torch.ones(2))
"""


def lines_of(done):
    assert done.returncode == 0, done.describe()
    run_numsan.validate(done.report)
    return {finding["op"]: (finding["location"]["file"], finding["location"]["code"]) for finding in done.findings}


def test_a_command_line_and_what_it_makes(warm, tmp_path):
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("archived.py", "\ndef read(value):\n    value.acos().sum().item()  # BUG of the archive\n")
    done = run_numsan.run_command([run_numsan.PYTHON, "-W", "ignore", "-Bc", COMMAND.replace(
        "x = -torch.ones(2)", "x = -2 * torch.ones(2)"), "-c", "not this"], cwd=tmp_path)
    code = lines_of(done)
    assert code["aten::log"] == ("<string>", "value.log().sum().item()  # BUG of the command"), done.describe()
    assert code["aten::log10"] == ("<made>", "value.log10().sum().item()  # BUG of what was made"), done.describe()
    assert code["aten::acos"][0].endswith("archive.zip/archived.py"), done.describe()
    assert code["aten::acos"][1] == "value.acos().sum().item()  # BUG of the archive", done.describe()
    assert code["aten::sqrt"] == ("<string>", "(w * 1).sqrt().sum().backward()  # BUG at the end"), done.describe()
    # Its name is that of the command's code, and its fifth line is one of the command's, which it is not.
    assert code["aten::log2"] == ("<string>", None), done.describe()
    assert code["aten::log1p"] == ("<unknown>", None), done.describe()
    assert "= source:   <unknown> lies in no file, and Python keeps no text of it" in done.stderr, done.describe()
    assert "5  |     value.log().sum().item()  # BUG of the command" in done.stderr, done.describe()


def test_a_program_on_stdin(warm, tmp_path):
    (tmp_path / "program.py").write_text(STDIN)
    for command, code in (("- < program.py", "value.log().sum().item()  # BUG"), ("< <(cat program.py)", None)):
        done = run_numsan.run_command(["bash", "-c", f"'{run_numsan.PYTHON}' {command}"], cwd=tmp_path)
        assert lines_of(done) == {"aten::log": ("<stdin>", code)}, done.describe()
        assert ("= source:" in done.stderr) == (code is None), done.describe()
