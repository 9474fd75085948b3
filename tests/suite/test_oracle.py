"""Every label of the suite is held against the oracle: is the marked line really where the bad
value is born?"""
import json
import os

import pytest

import judged
import manifest
from oracle_check import unjudged

ALL, ERRORS = judged.everything()
BEFORE = judged.known()
# What the oracle is asked about: judged.py says why not the others.
# The programs of threads/ are many: those that are not judged yet are asked about with NUMSAN_TEST_ALL only.
LATER = [] if os.environ.get("NUMSAN_TEST_ALL") else [entry for entry in ALL if entry["file"].startswith("threads/")]
ASKED = [entry for entry in ALL
         if entry not in LATER and not unjudged(entry) and not judged.is_judged(entry, BEFORE)]
pytestmark = [pytest.mark.quick, pytest.mark.xdist_group("oracle"),  # one worker asks the oracle
              pytest.mark.timeout(5400 if os.environ.get("NUMSAN_TEST_ALL") else 1200)]


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory):
    """What the oracle says of every program it is asked about; torch is imported once for all of them."""
    out = tmp_path_factory.mktemp("oracle")
    judged.ask(ASKED, out)
    return out


def verdict_of(entry, verdicts):
    reason = unjudged(entry)
    if reason:
        pytest.skip(f"{entry['id']}: {reason}")
    if entry in LATER and not judged.is_judged(entry, BEFORE):
        pytest.skip(f"{entry['id']}: not judged yet as it is: tests/suite/judged.py --write, or scripts/test --all")
    if entry not in ASKED:
        pytest.skip("judged before, with this content of program and oracle (judged.json)")
    path = judged.verdict_path(entry, verdicts)
    log = path.with_suffix(".log").read_text()
    assert path.exists(), f"the oracle died on {entry['file']}:\n{log[-2000:]}"
    verdict = json.loads(path.read_text())
    if "HigherOrderOperator" in (verdict["failure"] or ""):
        pytest.skip(f"{entry['id']}: a dispatch mode cannot run {entry['needs']} code of this kind")
    assert verdict["failure"] is None, f"{entry['file']} failed:\n{verdict['failure']}"
    return verdict


def test_labels():
    assert not ERRORS, "\n".join(ERRORS)


@pytest.mark.parametrize("name", manifest.SETS)
def test_manifest_is_current(name):
    written = (manifest.SUITE / manifest.SETS[name][0]).read_text()
    assert written == manifest.text_of(manifest.build(name=name)[0]), "run manifest.py --write"


def test_a_changed_program_or_oracle_is_judged_again(tmp_path, monkeypatch):
    """What is kept is of the content of both; NUMSAN_TEST_ALL asks about all."""
    monkeypatch.delenv("NUMSAN_TEST_ALL", raising=False)
    program, oracle = tmp_path / "p00.py", tmp_path / "oracle.py"
    monkeypatch.setattr(manifest, "SUITE", tmp_path)
    monkeypatch.setattr(judged, "ORACLE", [oracle])
    entry = {"id": "p00", "file": "p00.py"}
    program.write_text("x = 1\n")
    oracle.write_text("y = 1\n")
    before = {"p00": judged.key_of(entry)}
    assert judged.is_judged(entry, before) and not judged.is_judged(entry, {})
    for path in (program, oracle):
        text = path.read_text()
        path.write_text(text + "# label: another\n")
        assert not judged.is_judged(entry, before)
        path.write_text(text)
    assert judged.is_judged(entry, before)
    monkeypatch.setenv("NUMSAN_TEST_ALL", "1")
    assert not judged.is_judged(entry, before)


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry["id"])
def test_program(entry, verdicts):
    complaints = judged.complaints_about(entry, verdict_of(entry, verdicts))
    assert not complaints, f"{entry['file']}:\n" + "\n".join(complaints)
