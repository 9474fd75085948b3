"""What version 1 of the report promised, kept here as it was published: the report and its schema only add to it."""
import difflib
import json
import pathlib
import subprocess

import jsonschema
import run_numsan

GOLDEN = pathlib.Path(__file__).parent / "golden"
PUBLISHED = json.loads((GOLDEN / "report_1.schema.json").read_text())
OURS = json.loads(run_numsan.SCHEMA.read_text())
# The published text is of a run whose report had one fact less, another second advice, and quotes in the first.
PUBLISHED_ONLY = [
    "   = because:  every input of SqrtBackward0 was finite; the divisor 2*sqrt(x) has 3 zeros",
    "help: keep the argument away from zero: `(d2 + eps).sqrt()`, with eps inside the root",
]
OURS_ONLY = [
    "   = because:  every input of SqrtBackward0 was finite; the divisor 2*sqrt(x) has 3 zeros; the forward output at "
    "losses.py:31 was finite",
    "help: keep the argument away from zero: (d2 + eps).sqrt(), with eps inside the root",
    "help: where zero distance is expected, mask before the root, not after it",
]
WORDS = ("description", "title", "$comment", "$id", "examples", "default")


def report(*arguments, cwd=None):
    done = subprocess.run([run_numsan.COMMAND, "report", *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_published_example_is_shown_as_published(build, tmp_path):
    (tmp_path / "numsan-4242.json").write_text((GOLDEN / "example_report.json").read_text())
    shown = report("numsan-4242.json", cwd=tmp_path).splitlines()
    published = (GOLDEN / "example_report.txt").read_text().splitlines()
    changes = [line for line in difflib.ndiff(published, shown) if line[0] in "+-"]
    assert [line[2:] for line in changes if line[0] == "-"] == PUBLISHED_ONLY
    assert [line[2:] for line in changes if line[0] == "+"] == OURS_ONLY


def test_published_example_is_passed_on_whole(build):
    published = json.loads((GOLDEN / "example_report.json").read_text())
    assert json.loads(report(GOLDEN / "example_report.json", "--format", "json")) == published


def test_published_example_fits_both_schemas():
    published = json.loads((GOLDEN / "example_report.json").read_text())
    for schema in (PUBLISHED, OURS):
        jsonschema.Draft202012Validator(schema).validate(published)


def taken_back(old, new, at=""):
    """What a document by the published schema, or a reader that relies on it, could trip over; words for people are
    free. Properties may be added, also required ones, as we only write; values of an enumeration may be added."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key in WORDS and not at.endswith("/properties"):
                continue
            if key not in new:
                yield f"{at}/{key} is gone"
            elif key in ("enum", "required", "type") and isinstance(value, list):
                lost = [item for item in value if item not in new[key]]
                if lost:
                    yield f"{at}/{key} lost {lost}"
                if key == "type" and len(new[key]) > len(value):
                    yield f"{at}/{key} gained {[item for item in new[key] if item not in value]}"
            else:
                yield from taken_back(value, new[key], f"{at}/{key}")
        if at.endswith("/properties") or "properties" not in old:
            return
        for key in new.keys() - old.keys() - set(WORDS) - {"$defs"}:
            yield f"{at}/{key} is a new restriction"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{at} has {len(new)} entries, {len(old)} were published"
        for i, (one, other) in enumerate(zip(old, new)):
            yield from taken_back(one, other, f"{at}/{i}")
    elif old != new:
        yield f"{at} was {old!r} and is {new!r}"


def test_schema_only_adds():
    assert list(taken_back(PUBLISHED, OURS)) == []


def changed(path, value):
    """A copy of the published schema with one place changed; None removes it."""
    schema = json.loads(json.dumps(PUBLISHED))
    *folders, last = path.split("/")
    place = schema
    for folder in folders:
        place = place[folder]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return schema


def test_what_is_taken_back_is_noticed():
    run = "properties/run"
    for path, value in [("properties/verdict/enum", ["clean", "findings"]), ("properties/coverage", None),
                        (f"{run}/properties/steps/type", "number"), ("required", []), (f"{run}/maxProperties", 5),
                        ("additionalProperties", False), (f"{run}/properties/pid", None)]:
        assert list(taken_back(PUBLISHED, changed(path, value))), path
    for path, value in [("properties/new", {"type": "string"}), ("description", "other words"),
                        ("properties/verdict/enum", [*PUBLISHED["properties"]["verdict"]["enum"], "new"])]:
        assert not list(taken_back(PUBLISHED, changed(path, value))), path
