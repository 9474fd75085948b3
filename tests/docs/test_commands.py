"""Every command that README.md, ARCHITECTURE.md and docs/ show is run: here in a folder of its own, or by the test or
CI stage that ELSEWHERE names. Of the pages of root causes the programs are run (test_categories.py)."""
import os
import re
import shutil
import subprocess

import category_pages
import pytest
import run_numsan
import shown

# Command -> the file that runs it, and words in that file which say so.
ELSEWHERE = {
    "scripts/demo": ("tests/scripts/test_demo_script.py", 'builder.run("demo"'),
    "scripts/test": (".ci/run", "exec scripts/test"),
    "cmake --install build --prefix /opt/numsan": ("tests/cli/test_install.py", '"--install"'),
    "pip install .": ("tests/packaging/test_wheel.py", '"pip", "wheel", run_numsan.REPO'),
    "pip install . --config-settings cmake.define.NUMSAN_CUDA=OFF":
        ("tests/packaging/test_wheel.py", '"-DNUMSAN_CUDA=OFF"'),
    'pip install . --config-settings cmake.define.NUMSAN_PREBUILT_TORCH="$PWD/.venv/bin/python"': (
        "tests/packaging/test_wheel.py", "cmake.define.NUMSAN_PREBUILT_TORCH="),
    "scripts/build": ("scripts/test", '"$ROOT/scripts/build"'),
    "build/bin/numsan run -- ./trainer": ("tests/programs_cpp/test_libtorch.py", "launcher=launcher"),
    "tests/suite/run": ("scripts/test", "tests/suite/run"),
    "pytest --numsan": ("tests/python/test_pytest_plugin.py", "numsan.pytest_plugin"),
}
# The programs that the documents call train.py and healthy.py. They run some sixty times: an optimizer of torch's would
# import its compiler each time.
TRAIN = """
import torch
model = torch.nn.Linear(4, 1)
torch.nn.init.constant_(model.weight, 0.25)
for step in range(3):
    loss = torch.log(model(torch.ones(8, 4) * (1 if step < 2 else -9))).mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
"""
HEALTHY = TRAIN.replace(" -9", " 2")
# `name=value` in backquotes that is no option.
OTHER_NAMES = {"multiprocessing_context", "decide"}

SHOWING = [document for document in shown.DOCUMENTS if any(f.language == "sh" for f in shown.fences(document))]
# The one command of each page of a root cause is not among them: test_categories.py runs its program.
HERE = [document for document in SHOWING if document not in category_pages.PAGES]
AT_NIGHT = {"docs/accuracy.md", "docs/recipes.md"}  # runs of the suite; libraries that test_recipes.py has


def commands_of(document):
    return [command for fence in shown.fences(document) if fence.language == "sh" for command in shown.commands(fence)]


@pytest.fixture
def place(warm, tmp_path):
    """A folder in which the documents' commands mean what they say, and the environment for them."""
    for name in ("scripts", "tests", "python"):
        (tmp_path / name).symlink_to(run_numsan.REPO / name)
    (tmp_path / "build").symlink_to(run_numsan.BUILD)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "healthy.py").write_text(HEALTHY)
    rules = [fence.text for fence in shown.fences(run_numsan.REPO / "docs/allow-list.md") if fence.language == "text"]
    (tmp_path / "known.txt").write_text(rules[0])
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{run_numsan.PYTHON}" "$@"\n')
    python.chmod(0o755)
    for name in ("sbatch", "srun"):
        stand_in = python.parent / name
        script = run_numsan.REPO / "tests/docs/slurm_stand_in.py"
        stand_in.write_text(f'#!/bin/sh\nexec "{python}" "{script}" {name} "$@"\n')
        stand_in.chmod(0o755)
    environment = run_numsan.plain_environment({
        "NUMSAN_CACHE": str(run_numsan.CACHE), "NUMSAN_PYTHON": run_numsan.PYTHON, "NO_COLOR": "1",
        "PATH": f"{python.parent}:{os.environ['PATH']}"})
    return tmp_path, environment


def run(command, folder, environment, statuses=(0,)):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=420)
    said = f"{command}\nexit status {done.returncode}, expected {statuses}\n{done.stdout}{done.stderr}"
    assert done.returncode in statuses, said
    return done, said


@pytest.mark.parametrize("document", [
    pytest.param(document, id=shown.name_of(document),
                 marks=[pytest.mark.nightly] if shown.name_of(document) in AT_NIGHT else []) for document in HERE])
def test_commands_run(document, place):
    folder, environment = place
    printed = None
    for fence in shown.fences(document):
        if fence.language in ("python", "bash"):
            name = re.match(r"# (\S+\.(?:py|sbatch))\n", fence.text)
            assert name, f"{document}:{fence.line}: the first line of a program is `# NAME.py`"
            (folder / name[1]).write_text(fence.text)
        elif fence.language == "text" and fence.follows and printed is not None:
            missing = [line for line in fence.text.splitlines() if line.rstrip() not in printed]
            assert not missing, f"{document}:{fence.line}: not printed by the command before: {missing}\n{printed}"
        printed = None
        for command in shown.commands(fence) if fence.language == "sh" else ():
            if command.text in ELSEWHERE:
                continue
            done, said = run(command.text, folder, environment, command.statuses)
            printed = done.stdout + done.stderr
            for complaint in ("unknown option", "bad value", "numsan: off:", "numsan: allow:", ": expected "):
                assert complaint not in printed, said
            if "run " in command.text and "train.py" in command.text:
                silent = any(word in command.text for word in ("tier=off", "log=none", "--allow"))
                assert ("error[NS101]" in done.stderr) != silent, said


def test_commands_that_run_elsewhere_do():
    shown_here = {command.text for document in SHOWING for command in commands_of(document)}
    for command, (file, words) in ELSEWHERE.items():
        assert command in shown_here, f"{command}: in no document"
        assert words in (run_numsan.REPO / file).read_text(), f"{command}: {file} does not run it"


def test_fences_say_their_language():
    for document in shown.DOCUMENTS:
        for fence in shown.fences(document):
            assert fence.language in shown.LANGUAGES, f"{document}:{fence.line}: ```{fence.language}"


def test_the_preload_attaches(place):
    """README's second way: its report is where NUMSAN_OPTIONS says, and nothing is on stderr but findings."""
    folder, environment = place
    command = next(c.text for c in commands_of(run_numsan.REPO / "README.md") if c.text.startswith("LD_PRELOAD="))
    run(command, folder, environment)
    assert run_numsan.read_report(folder / "out.json")["verdict"] == "findings"


def test_options_in_sentences_exist(build):
    """Each `key=value:key=value` in backquotes is what the launcher takes."""
    table = subprocess.run([run_numsan.COMMAND, "table", "options"], capture_output=True, text=True, check=True).stdout
    keys = set(re.findall(r"^\| (\w+) \|", table, re.MULTILINE)) - {"key"}
    assert "tier" in keys and "break" in keys
    seen = 0
    for document in shown.DOCUMENTS:
        for text in re.findall(r"`([a-z_]+=[^`\s]*)`", document.read_text()):
            pairs = [pair.partition("=")[::2] for pair in text.split(":")]
            if pairs[0][0] in OTHER_NAMES:
                continue
            unknown = [key for key, _ in pairs if key not in keys]
            assert not unknown, f"{document}: `{text}`: {unknown} in no table of options"
            flags = [word for key, value in pairs for word in (f"--{key}", value)]
            done = subprocess.run([run_numsan.COMMAND, "run", *flags, "--", shutil.which("true")], capture_output=True,
                                  text=True, timeout=60)
            assert done.returncode == 0, f"{document}: `{text}`: {done.stderr}"
            seen += 1
    assert seen > 5
