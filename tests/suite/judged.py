#!/usr/bin/env python3
"""Which programs the oracle has judged, and found the labels of right, by the content of program and oracle.

    judged.py            lists the programs that were not judged as they are now
    judged.py --write    asks the oracle about those, and keeps in judged.json what it has no complaint about

The programs of threads/ with FIXED=1 are judged as healthy ones. A label that was right stays right while neither the
program nor the oracle changes, so a test run asks the oracle about the others only; with NUMSAN_TEST_ALL=1
(scripts/test --all) about all, on the torch that is installed.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import manifest
import oracle_check

JUDGED = manifest.SUITE / "judged.json"
ORACLE = sorted(manifest.SUITE.glob("oracle*.py"))


def key_of(entry):
    """Of the program, with its label, and of all of the oracle."""
    digest = hashlib.sha256()
    for path in (manifest.SUITE / entry["file"], *ORACLE):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def everything():
    """(entries of all sets, errors). Programs of threads stand there once more, as they are with FIXED=1."""
    entries, errors = [], []
    for name in manifest.SETS:
        built, wrong = manifest.build(manifest.SUITE, name)
        entries += built["programs"] + built["controls"]
        entries += manifest.mended(built)["controls"] if name == "threads" else []
        errors += wrong
    return entries, errors


def known():
    return json.loads(JUDGED.read_text()) if JUDGED.exists() else {}


def is_judged(entry, before):
    return before.get(entry["id"]) == key_of(entry) and not os.environ.get("NUMSAN_TEST_ALL")


def ask(entries, out):
    """Runs the oracle over programs; verdicts and logs go to the folder `out`."""
    for fixed in ("0", "1"):
        asked = [entry for entry in entries if is_mended(entry) == (fixed == "1")]
        if not asked:
            continue
        folder = pathlib.Path(out, "fixed" if fixed == "1" else "")
        command = [sys.executable, str(manifest.SUITE / "oracle.py"), "--jobs", "2", "--out", str(folder)]
        for entry in asked:
            if "zero" in entry.get("kind", ()):
                command += ["--zeros", str(manifest.SUITE / entry["file"])]
        command += [str(manifest.SUITE / entry["file"]) for entry in asked]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "DEVICE": "cpu", "PYTHONDONTWRITEBYTECODE": "1",
                       "FIXED": fixed}
        subprocess.run(command, cwd=out, env=environment, check=True)


def is_mended(entry):
    return entry.get("tempts") == "mended"


def verdict_path(entry, out):
    """Where `ask` leaves the verdict; its log has the suffix .log."""
    return pathlib.Path(out, "fixed" if is_mended(entry) else "", pathlib.Path(entry["file"]).stem + ".json")


def complaints_about(entry, verdict):
    if "tempts" in entry:
        return oracle_check.control_complaints(entry, verdict)
    return oracle_check.program_complaints(entry, verdict)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    every, errors = everything()
    if errors:
        raise SystemExit("\n".join(errors))
    before = known()
    entries = [entry for entry in every if not oracle_check.unjudged(entry)]
    asked = [entry for entry in entries if not is_judged(entry, before)]
    if not options.write:
        print("\n".join(entry["file"] for entry in asked) or "all are judged")
        return 1 if asked else 0
    after, wrong = {entry["id"]: key_of(entry) for entry in entries if entry not in asked}, 0
    with tempfile.TemporaryDirectory(prefix="oracle-") as out:
        ask(asked, out)
        for entry in asked:
            path = verdict_path(entry, out)
            verdict = json.loads(path.read_text()) if path.exists() else {"failure": "the oracle died"}
            if "HigherOrderOperator" in (verdict["failure"] or ""):
                continue
            found = [verdict["failure"]] if verdict["failure"] else complaints_about(entry, verdict)
            wrong += bool(found)
            print("".join(f"{entry['id']} {entry['file']}: {one}\n" for one in found), end="")
            if not found:
                after[entry["id"]] = key_of(entry)
    JUDGED.write_text(json.dumps(dict(sorted(after.items())), indent=1) + "\n")
    print(f"{len(after)} of {len(entries)} programs are judged, {wrong} labels are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
