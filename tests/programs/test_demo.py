"""The program of scripts/demo: numsan names what the program itself shows to be wrong, in the words of README."""
import ast
import json
import re

import pytest

import run_numsan

PROGRAM = run_numsan.REPO / "tests" / "programs" / "demo" / "train.py"
STEPS_IN_EPOCH = 30
# The second epoch is the first that lets an anchor be its own positive.
ARGS = ["--epochs", "2", "--steps", str(STEPS_IN_EPOCH)]
# Prints the first step with an anchor that is its own positive, from the same stream of triplets and without a model.
REPLAY = """
import json, sys
import torch
sys.path.insert(0, sys.argv[1])
import train
torch.manual_seed(4)
digits = train.load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
order = torch.randperm(len(images))[:1400]
triplets = train.Triplets(images[order], torch.tensor(digits.target)[order], torch.Generator().manual_seed(4))
for step in range(2 * int(sys.argv[2])):
    anchor, positive, _ = triplets.batch(32, oversample=step >= int(sys.argv[2]))
    same = int((anchor == positive).flatten(1).all(1).sum())
    if same:
        print(json.dumps([step, same]))
        break
"""


def run(folder, *more):
    """The demo as scripts/demo runs it, from the root, so that the report's paths are README's."""
    command = [run_numsan.PYTHON, str(PROGRAM.relative_to(run_numsan.REPO)), *ARGS, *more]
    done = run_numsan.run_command(command, launcher="run", cwd=run_numsan.REPO,
                                  options={"report": folder / "report.json"})
    assert done.returncode == 0 and done.report is not None, done.describe()
    run_numsan.validate(done.report)
    return done


pytestmark = pytest.mark.xdist_group("demo")  # one worker runs it


@pytest.fixture(scope="module")
def demo(warm, tmp_path_factory):
    """One run of the demo without the cure."""
    return run(tmp_path_factory.mktemp("demo"))


def distance_line():
    """The line of the return of TripletLoss.distance: the root whose derivative is infinite at 0."""
    tree = ast.parse(PROGRAM.read_text())
    lines = [part.lineno for part in ast.walk(tree) if isinstance(part, ast.FunctionDef) and part.name == "distance"
             for part in part.body if isinstance(part, ast.Return)]
    assert len(lines) == 1, lines
    return lines[0]


def essence(text):
    """What a report says, without figures that depend on the machine's arithmetic."""
    kept = [r"^error\[NS\d+\]: .*", r"^ *--> \S+ in \S+", r"^ *\d+ \| .*", r"step \d+, \w+", r"\(aten::.* in \w+\)$",
            r"^ *= escaped: .*", r"= category: \w+ [^(]*", r"^ *= because: .*", r"^note: .*", r"^help: .*"]
    return [re.findall(pattern, text, re.M) for pattern in kept]


def test_finding_is_the_first_anchor_that_is_its_own_positive(demo, tmp_path):
    folder = str(PROGRAM.parent)
    replay = run_numsan.run_plain_command([run_numsan.PYTHON, "-c", REPLAY, folder, str(STEPS_IN_EPOCH)], cwd=tmp_path)
    assert replay.returncode == 0 and replay.stdout, replay.describe()
    step, same = json.loads(replay.stdout)
    assert len(demo.findings) == 1, demo.describe()
    first = demo.findings[0]
    assert (first["location"]["file"], first["location"]["line"]) == (str(PROGRAM), distance_line()), demo.describe()
    assert (first["step"], first["outputs"][0]["nan"]) == (step, same), demo.describe()
    assert (first["phase"], first["mechanism"]) == ("backward", "SING"), demo.describe()
    assert first["forward"]["op"] == "aten::sqrt" and first["escape"]["into"] == "gradient", demo.describe()


def test_report_says_what_readme_says(demo):
    readme = (run_numsan.REPO / "README.md").read_text()
    shown = readme.split("<!-- report -->")[1].split("<!-- end report -->")[0]
    assert all(essence(shown)), essence(shown)
    assert essence(demo.stderr) == essence(shown), demo.describe()


def test_cure_is_met_with_silence(warm, tmp_path):
    done = run(tmp_path, "--eps", "1e-12")
    assert done.findings == [] and done.report["verdict"] == "clean" and "nan" not in done.stdout, done.describe()
    assert done.report["run"]["steps"] == 2 * STEPS_IN_EPOCH, done.report["run"]
