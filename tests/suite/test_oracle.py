"""Every label of the suite is held against the oracle: is the marked line really where the bad
value is born?"""
import json
import os
import subprocess
import sys

import pytest

import manifest
from oracle_check import control_complaints, program_complaints, unjudged

ENTRIES, ERRORS = manifest.build()
pytestmark = pytest.mark.xdist_group("oracle")  # one worker asks the oracle


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory):
    """What the oracle says of every program it can judge; torch is imported once for all of them."""
    out = tmp_path_factory.mktemp("oracle")
    judged = [entry for entry in ENTRIES["programs"] + ENTRIES["controls"] if not unjudged(entry)]
    command = [sys.executable, str(manifest.SUITE / "oracle.py"), "--jobs", "2", "--out", str(out)]
    for entry in judged:
        if "zero" in entry.get("kind", ()):
            command += ["--zeros", str(manifest.SUITE / entry["file"])]
    command += [str(manifest.SUITE / entry["file"]) for entry in judged]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DEVICE": "cpu",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=out, env=environment, check=True)
    return out


def verdict_of(entry, verdicts):
    reason = unjudged(entry)
    if reason:
        pytest.skip(f"{entry['id']}: {reason}")
    name = entry["file"].split("/")[1].removesuffix(".py")
    path = verdicts / f"{name}.json"
    log = (verdicts / f"{name}.log").read_text()
    assert path.exists(), f"the oracle died on {entry['file']}:\n{log[-2000:]}"
    verdict = json.loads(path.read_text())
    if "HigherOrderOperator" in (verdict["failure"] or ""):
        pytest.skip(f"{entry['id']}: a dispatch mode cannot run {entry['needs']} code of this kind")
    assert verdict["failure"] is None, f"{entry['file']} failed:\n{verdict['failure']}"
    return verdict


def test_labels():
    assert not ERRORS, "\n".join(ERRORS)


def test_manifest_is_current():
    assert manifest.MANIFEST.read_text() == manifest.text_of(ENTRIES), "run manifest.py --write"


@pytest.mark.parametrize("entry", ENTRIES["programs"], ids=lambda entry: entry["id"])
def test_program(entry, verdicts):
    complaints = program_complaints(entry, verdict_of(entry, verdicts))
    assert not complaints, f"{entry['file']}:\n" + "\n".join(complaints)


@pytest.mark.parametrize("entry", ENTRIES["controls"], ids=lambda entry: entry["id"])
def test_control(entry, verdicts):
    complaints = control_complaints(entry, verdict_of(entry, verdicts))
    assert not complaints, f"{entry['file']}:\n" + "\n".join(complaints)
