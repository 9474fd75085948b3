"""Whose line is named depends on where the interpreter's own modules are, not on what a folder is called."""
import pytest

import run_numsan

# The standard library's own code computes what overflows: the line to look at is the one that called it.
PROGRAM = """
import colorsys
import torch
torch.manual_seed(0)
layer = torch.nn.Linear(3, 3)
for step in range(2):
    scale = 2.8e38 if step == 1 else 1.0
    red, green, blue = layer(torch.rand(4, 3)).abs().add(1.0).clamp(max=1.2).mul(scale).unbind(1)
    _, orange, _ = colorsys.rgb_to_yiq(red, -green, -blue)  # BUG
    orange.sum().backward()
"""


@pytest.mark.parametrize("folder", ["lib/python3.11/mine", "lib/python3-projects", "lib/python3.11/site-packages/mine"])
def test_program_in_a_folder_with_such_a_name(folder, warm, tmp_path):
    program = tmp_path / folder / "train.py"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM.replace("colorsys.rgb_to_yiq(red, -green, -blue)", "0, torch.sqrt(-red), 0"))
    watched = run_numsan.run(program, cwd=tmp_path)
    assert watched.returncode == 0 and watched.findings, watched.describe()
    place, own = watched.findings[0]["location"], watched.findings[0]["user_location"]
    assert (place["file"], place["line"]) == (str(program), run_numsan.marked_line(program)), watched.describe()
    assert own is None, watched.describe()


def test_line_that_called_the_standard_library(warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    watched = run_numsan.run(program, cwd=tmp_path)
    assert watched.returncode == 0 and watched.findings, watched.describe()
    first = watched.findings[0]
    assert (first["location"]["file"], first["location"]["line"]) == (str(program), run_numsan.marked_line(program)), \
        watched.describe()
    assert first["stack"][0]["file"].endswith("/colorsys.py"), watched.describe()
