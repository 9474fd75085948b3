"""Findings as text for people."""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
import typing

from . import _command

Finding = dict[str, typing.Any]
Key = tuple[str, int, str]


def key(finding: Finding) -> Key:
    """What stays of a finding in one process: its number changes with findings that come later and were made before.

    With `escape=any` one that went nowhere so far becomes an error where its value escapes after all: a new one.
    """
    return finding["fingerprint"], finding["seq"], finding["severity"]


def place(finding: Finding) -> str:
    """`train.py:12`, below the working directory as people write it, or `cell In[3]:2`."""
    at = finding.get("location")
    if not at:
        return "no source line is known"
    if at.get("cell"):
        return f"cell In[{at['cell']}]:{at['line']}"
    file = at["file"]
    below = os.path.relpath(file) if file.startswith(os.getcwd() + "/") else file
    return f"{below}:{at['line']}"


def line(finding: Finding) -> str:
    """One line: severity, code, title, place."""
    return f"{finding['severity']}[{finding['code']}]: {finding['title']} at {place(finding)}"


def text(report: dict[str, typing.Any], findings: list[Finding]) -> str:
    """The whole text of these findings, as the command shows a report; a line each where the command is missing."""
    command = _command.command()
    short = "\n".join(line(finding) for finding in findings)
    if command is None:
        return short
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "NUMSAN_OPTIONS")}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({**report, "findings": findings}, file)
        file.flush()
        try:
            done = subprocess.run([command, "report", "--format", "text", file.name], env=environment, text=True,
                                  capture_output=True, errors="replace", timeout=60, check=True)
        except (OSError, subprocess.SubprocessError):
            return short
    kept = [one for one in done.stdout.splitlines() if not one.startswith("numsan: ")]  # the summary is of the run
    return "\n".join(kept).strip() or short
