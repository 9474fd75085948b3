#!/usr/bin/env python3
"""Builds the manifests from the labels and markers of the programs: manifest.json of the suite's programs and
controls, threads/manifest.json of the programs made from public threads.

usage: manifest.py --check | --write     checks everything; --write also writes both files
"""
import argparse
import collections
import hashlib
import json
import pathlib
import re
import sys

import markers

SUITE = pathlib.Path(__file__).resolve().parent
MANIFEST = SUITE / "manifest.json"
PROGRAM_KEYS = ("phase", "mechanism", "category", "category_alt", "birth_op", "kind", "first_step",
                "severity", "loss_stays_finite", "dtype", "model", "family", "needs", "fragile")
CONTROL_KEYS = ("tempts", "max_severity", "dtype", "needs")
FROZEN_ONE_IN = 3


def thread_entry(source, entry):
    """What a program made from a public thread says besides. Whole families are frozen, by their names alone: nobody
    looks at what a tool gets wrong there."""
    family = source.word("family")
    return {**entry, "family": family, "frozen": is_frozen(family), "thread": source.thread("thread"),
            "uses": source.some("uses", markers.LIBRARIES)}


def is_frozen(family):
    return int(hashlib.sha256(family.encode()).hexdigest(), 16) % FROZEN_ONE_IN == 0


def thread_program(path):
    source = markers.read_source(path, (*PROGRAM_KEYS, "thread", "uses", "fix_kind"))
    entry = thread_entry(source, program_entry(source, families=None))
    return {**entry, "fix_kind": source.one("fix_kind", markers.FIX_KINDS), "fix": source.text("fix")}


def thread_control(path):
    source = markers.read_source(path, (*CONTROL_KEYS, "family", "thread", "uses"))
    return {**thread_entry(source, control_entry(source)), "why": source.text("why")}


def suite_program(path):
    return program_entry(markers.read_source(path, PROGRAM_KEYS), markers.FAMILIES)


def suite_control(path):
    return control_entry(markers.read_source(path, CONTROL_KEYS))


# name of a set -> (its manifest, longest program, its programs, its controls); these as (folder, file name, entry of a
# path)
SETS = {
    "suite": ("manifest.json", 64, ("programs", re.compile(r"p\d\d_[a-z0-9_]+\.py"), suite_program),
              ("controls", re.compile(r"q\d\d_[a-z0-9_]+\.py"), suite_control)),
    "threads": ("threads/manifest.json", 110, ("threads", re.compile(r"t\d\d\d_[a-z0-9_]+\.py"), thread_program),
                ("threads", re.compile(r"h\d\d\d_[a-z0-9_]+\.py"), thread_control)),
}


def program_entry(source, families):
    """The manifest entry of one bug program; its family is one of `families`, None for any word."""
    path = source.path
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
        "family": source.one("family", families) if families else source.word("family"),
        "fragile": source.flag("fragile"),
    }
    if entry["category"] in entry["category_alt"]:
        source.fail("category_alt", f"category_alt repeats the category {entry['category']}")
    if entry["kind"] == ["zero"] and entry["severity"] != "warning":
        source.fail("severity", "a program that only makes zeros has severity=warning")
    return entry


def control_entry(source):
    """The manifest entry of one healthy program."""
    for marker in ("BUG", "BUG-ALT", "PRE"):
        if source.lines[marker]:
            raise markers.LabelError(source.path, source.lines[marker][0],
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
    return {"id": path.name.split("_")[0], "file": f"{path.parent.name}/{path.name}", "story": source.story}


def build(suite=SUITE, name="suite"):
    """(manifest, errors) of all programs and controls of a set."""
    _, longest, *kinds = SETS[name]
    manifest, errors = {"programs": [], "controls": []}, []
    for key, (folder, file_name, make) in zip(manifest, kinds):
        for path in sorted((suite / folder).glob("*.py")):
            names = [other for at, other, _ in kinds if at == folder]
            if file_name is names[0] and not any(other.fullmatch(path.name) for other in names):
                patterns = " or ".join(other.pattern for other in names)
                errors.append(f"{path}:1: file name does not match {patterns}")
            if not file_name.fullmatch(path.name):
                continue
            try:
                manifest[key].append(make(path))
                length = len(path.read_text().splitlines())
                if length > longest:
                    raise markers.LabelError(path, length, f"{length} lines, at most {longest} are wanted")
            except markers.LabelError as error:
                errors.append(str(error))
        by_id = collections.defaultdict(list)
        for entry in manifest[key]:
            by_id[entry["id"]].append(entry["file"])
        errors += [f"{files[1]}:1: id {name} is also {files[0]}"
                   for name, files in by_id.items() if len(files) > 1]
    return manifest, list(dict.fromkeys(errors))


def text_of(manifest):
    """A manifest's file: one entry a line, so that a diff shows the programs that changed."""
    parts = []
    for folder, entries in manifest.items():
        rows = ",\n".join("  " + json.dumps(entry) for entry in entries)
        parts.append(f' "{folder}": [\n{rows}\n ]' if rows else f' "{folder}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def load(suite=SUITE, name="suite"):
    """A set's manifest as the programs say it is now; says so on stderr where its file is older."""
    manifest, errors = build(suite, name)
    if errors:
        raise SystemExit("\n".join(errors))
    written = suite / SETS[name][0]
    if not written.exists() or written.read_text() != text_of(manifest):
        print(f"{written} is older than the programs; run manifest.py --write", file=sys.stderr)
    return manifest


def of_families(manifest, families):
    """The part of a manifest of threads whose families are open or frozen, or all of any manifest."""
    return {key: [entry for entry in entries if families == "all" or entry["frozen"] == (families == "frozen")]
            for key, entries in manifest.items()}


def mended(manifest):
    """The bug programs of threads as what they are with FIXED=1: healthy programs."""
    keys = ("file", "story", "dtype", "needs", "intended_lines", "family", "frozen")
    return {"programs": [],
            "controls": [{"id": f"{entry['id']}-fixed", **{key: entry[key] for key in keys}, "tempts": "mended",
                          "max_severity": "none"} for entry in manifest["programs"]]}


def counts(manifest):
    """Lines of text: how many programs there are of each phase, type, category and so on."""
    bugs = manifest["programs"]
    yield f"programs {len(bugs)}, controls {len(manifest['controls'])}"
    every = ("phase", "dtype", "category", "mechanism", "severity", "family", "needs", "fix_kind", "uses", "frozen")
    for key in (key for key in every if bugs and key in bugs[0]):
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
    errors = []
    for name, (file, *_) in SETS.items():
        manifest, wrong = build(name=name)
        written = SUITE / file
        if options.check and not wrong and written.read_text() != text_of(manifest):
            wrong.append(f"{written}:1: not what the programs say; run manifest.py --write")
        if options.write and not wrong:
            written.write_text(text_of(manifest))
        print("\n".join(counts(manifest)))
        errors += wrong
    if errors:
        print("\n".join(errors), file=sys.stderr)
        print(f"{len(errors)} errors", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
