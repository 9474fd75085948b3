"""docs/recipes.md: the commands of its workflows and of its image run, but for those that install packages. Its `sh`
commands run in test_commands.py."""
import json
import os
import re

import pytest
import run_numsan
import shown
import yaml
from test_commands import TRAIN, run

RECIPES = run_numsan.REPO / "docs/recipes.md"
pytestmark = pytest.mark.xdist_group("recipes")  # in their order
INSTALLS = re.compile(r"(?:pip|RUN pip) install ")


def file_named(name):
    """The one fence whose first line is `# NAME`."""
    found = [fence.text for fence in shown.fences(RECIPES) if fence.text.startswith(f"# {name}\n")]
    assert len(found) == 1, f"{len(found)} fences are {name}"
    return found[0]


@pytest.fixture(scope="module")
def machine(warm, tmp_path_factory):
    """A checkout with train.py where numsan is installed. A workflow finds what the one before left."""
    tmp_path = tmp_path_factory.mktemp("recipes")
    (tmp_path / "train.py").write_text(TRAIN)
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "numsan").symlink_to(run_numsan.COMMAND)
    (commands / "python").write_text(f'#!/bin/sh\nexec "{run_numsan.PYTHON}" "$@"\n')
    (commands / "python").chmod(0o755)
    return tmp_path, run_numsan.plain_environment({
        "NUMSAN_CACHE": str(run_numsan.CACHE), "PATH": f"{commands}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")})


TRAINING = "numsan run --fail-on error --report night/numsan-%p.json -- python train.py"


def test_github_actions(machine):
    folder, environment = machine
    workflow = yaml.safe_load(file_named(".github/workflows/night.yml"))
    assert {"name", "jobs", True} == set(workflow), "`on` is true in YAML 1.1, and GitHub reads it as the word"
    ran = []
    for step in workflow["jobs"]["numsan"]["steps"]:
        assert ("run" in step) != ("uses" in step), step
        command = step.get("run", "")
        if not command or INSTALLS.match(command):
            continue
        assert step.get("if") in (None, "always()"), step
        fails = "--fail-on" in command
        run(f"set -e\n{command}", folder, environment, (66,) if fails else (0,))
        ran.append(command)
    assert len(ran) == 3 and TRAINING in ran[0]
    uploaded = [step["with"]["sarif_file"] for step in workflow["jobs"]["numsan"]["steps"]
                if "upload-sarif" in step.get("uses", "")]
    results = json.loads((folder / uploaded[0]).read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["NS101"]
    assert "train.py:6" in (folder / "summary.md").read_text()


def test_gitlab(machine):
    folder, environment = machine
    job = yaml.safe_load(file_named(".gitlab-ci.yml"))["numsan"]
    assert TRAINING in job["script"], "the command of the other workflow, whose reports are there"
    for command in (*job["script"], *job["after_script"]):
        if not INSTALLS.match(command) and command != TRAINING:
            run(command, folder, environment)
    assert '<failure message="' in (folder / job["artifacts"]["reports"]["junit"]).read_text()
    assert all((folder / path).exists() for path in job["artifacts"]["paths"])


def test_dockerfile(machine):
    """Each instruction is one that is known here; what ENTRYPOINT and CMD make together is run."""
    folder, environment = machine
    said = {}
    for line in file_named("Dockerfile").splitlines()[1:]:
        word, rest = line.split(" ", 1)
        assert word in ("FROM", "WORKDIR", "COPY", "RUN", "ENV", "ENTRYPOINT", "CMD") and word not in said, line
        said[word] = rest
    assert INSTALLS.match("RUN " + said["RUN"])
    key, _, value = said["ENV"].partition("=")
    environment[key] = value.replace(said["WORKDIR"], str(folder))
    command = json.loads(said["ENTRYPOINT"]) + json.loads(said["CMD"])
    done, told = run(" ".join(command), folder, environment)
    assert "error[NS101]" in done.stderr and list(folder.glob("numsan-*.json")), told
