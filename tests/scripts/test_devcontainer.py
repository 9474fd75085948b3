""".devcontainer: its commands are those of this repository, and none has an argument that its script refuses."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_commands_are_there():
    described = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / described["build"]["dockerfile"]).is_file()
    commands = described["postCreateCommand"].split(" && ")
    setup, hooks, build = commands
    script, *arguments = setup.split()
    known = set(re.findall(r"^ +(--\w+)\)", (ROOT / script).read_text(), re.M))
    assert set(arguments) == known, (arguments, known)
    assert (ROOT / hooks.split()[-1] / "pre-commit").stat().st_mode & 0o111
    assert (ROOT / build).stat().st_mode & 0o111
