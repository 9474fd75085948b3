#!/usr/bin/env python3
"""Builds manifest.json from the labels and markers of the suite's programs and controls.

usage: manifest.py --check | --write     checks everything; --write also writes manifest.json
"""
import argparse
import collections
import json
import pathlib
import re
import sys

import markers

SUITE = pathlib.Path(__file__).resolve().parent
MANIFEST = SUITE / "manifest.json"
LONGEST = 64
PROGRAM_KEYS = ("phase", "mechanism", "category", "category_alt", "birth_op", "kind", "first_step",
                "severity", "loss_stays_finite", "dtype", "model", "family", "needs", "fragile")
CONTROL_KEYS = ("tempts", "max_severity", "dtype", "needs")
FILE_NAME = {"programs": re.compile(r"p\d\d_[a-z0-9_]+\.py"),
             "controls": re.compile(r"q\d\d_[a-z0-9_]+\.py")}


def program_entry(path):
    """The manifest entry of one bug program."""
    source = markers.read_source(path, PROGRAM_KEYS)
    bugs = source.lines["BUG"]
    if len(bugs) != 1:
        raise markers.LabelError(path, bugs[1] if bugs else 1,
                                 f"{len(bugs)} lines are marked `# BUG`, expected one")
    entry = {
        **_identity(source),
        "model": source.word("model"),
        "phase": source.one("phase", markers.PHASES),
        "mechanism": source.one("mechanism", markers.MECHANISMS),
        "category": source.one("category", markers.CATEGORIES),
        "category_alt": source.some("category_alt", markers.CATEGORIES),
        "birth_op": source.ops("birth_op"),
        "kind": source.some("kind", markers.KINDS, at_least=1),
        "line": bugs[0],
        "lines_ok": sorted(bugs + source.lines["BUG-ALT"]),
        "precursor_lines": source.lines["PRE"],
        "intended_lines": source.lines["INTENDED"],
        "first_step": source.number("first_step"),
        "severity": source.one("severity", markers.SEVERITIES),
        "loss_stays_finite": source.flag("loss_stays_finite"),
        "dtype": source.one("dtype", markers.DTYPES),
        "needs": source.some("needs", markers.NEEDS),
        "family": source.one("family", markers.FAMILIES),
        "fragile": source.flag("fragile"),
    }
    if entry["category"] in entry["category_alt"]:
        source.fail("category_alt", f"category_alt repeats the category {entry['category']}")
    if entry["kind"] == ["zero"] and entry["severity"] != "warning":
        source.fail("severity", "a program that only makes zeros has severity=warning")
    return entry


def control_entry(path):
    """The manifest entry of one healthy program."""
    source = markers.read_source(path, CONTROL_KEYS)
    for marker in ("BUG", "BUG-ALT", "PRE"):
        if source.lines[marker]:
            raise markers.LabelError(path, source.lines[marker][0],
                                     f"a control has no `# {marker}`")
    return {
        **_identity(source),
        "tempts": source.word("tempts"),
        "max_severity": source.one("max_severity", markers.LEVELS),
        "intended_lines": source.lines["INTENDED"],
        "dtype": source.one("dtype", markers.DTYPES),
        "needs": source.some("needs", markers.NEEDS),
    }


def _identity(source):
    path = source.path
    folder = path.parent.name
    if not FILE_NAME[folder].fullmatch(path.name):
        raise markers.LabelError(path, 1, f"file name does not match {FILE_NAME[folder].pattern}")
    if source.length > LONGEST:
        raise markers.LabelError(path, source.length,
                                 f"{source.length} lines, at most {LONGEST} are wanted")
    return {"id": path.name[:3], "file": f"{folder}/{path.name}", "story": source.story}


def build(suite=SUITE):
    """(manifest, errors) of everything under programs/ and controls/."""
    manifest, errors = {"programs": [], "controls": []}, []
    for folder, make in (("programs", program_entry), ("controls", control_entry)):
        for path in sorted((suite / folder).glob("*.py")):
            try:
                manifest[folder].append(make(path))
            except markers.LabelError as error:
                errors.append(str(error))
        by_id = collections.defaultdict(list)
        for entry in manifest[folder]:
            by_id[entry["id"]].append(entry["file"])
        errors += [f"{files[1]}:1: id {name} is also {files[0]}"
                   for name, files in by_id.items() if len(files) > 1]
    return manifest, errors


def text_of(manifest):
    """manifest.json: one entry a line, so that a diff shows the programs that changed."""
    parts = []
    for folder, entries in manifest.items():
        rows = ",\n".join("  " + json.dumps(entry) for entry in entries)
        parts.append(f' "{folder}": [\n{rows}\n ]' if rows else f' "{folder}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def load(suite=SUITE):
    """The manifest as the programs say it is now; says so on stderr where manifest.json is older."""
    manifest, errors = build(suite)
    if errors:
        raise SystemExit("\n".join(errors))
    written = suite / MANIFEST.name
    if not written.exists() or written.read_text() != text_of(manifest):
        print(f"{written} is older than the programs; run manifest.py --write", file=sys.stderr)
    return manifest


def counts(manifest):
    """Lines of text: how many programs there are of each phase, type, category and so on."""
    bugs = manifest["programs"]
    yield f"programs {len(bugs)}, controls {len(manifest['controls'])}"
    for key in ("phase", "dtype", "category", "mechanism", "severity", "family", "needs"):
        values = [entry[key] for entry in bugs]
        flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
        tally = sorted(collections.Counter(flat).items())
        yield f"{key:10} " + ", ".join(f"{name} {number}" for name, number in tally)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true", help="verify labels and manifest.json")
    group.add_argument("--write", action="store_true", help="verify labels, write manifest.json")
    options = parser.parse_args()
    manifest, errors = build()
    if options.check and not errors:
        written = MANIFEST.read_text() if MANIFEST.exists() else ""
        if written != text_of(manifest):
            errors.append(f"{MANIFEST}:1: not what the programs say; run manifest.py --write")
    if options.write and not errors:
        MANIFEST.write_text(text_of(manifest))
    print("\n".join(counts(manifest)))
    if errors:
        print("\n".join(errors), file=sys.stderr)
        print(f"{len(errors)} errors", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
