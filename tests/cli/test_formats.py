"""numsan report --format: each format against its schema or a reader of it, and as a golden file; which files of a
folder are read, and what is said of the others.

NUMSAN_WRITE_GOLDEN=1 writes the golden files anew: read the difference before it is committed.
"""
import html
import json
import os
import pathlib
import re
import subprocess
from urllib.parse import unquote

import jsonschema
import made_reports
import prometheus_client.openmetrics.parser as openmetrics
import pytest
import run_numsan
import xmlschema
from markdown_it import MarkdownIt
from xml.etree import ElementTree

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE / "golden" / "formats"
SARIF = json.loads((HERE / "schemas/sarif-2.1.0-rtm.4.json").read_text())
CASES = {"night": made_reports.night, "hostile": lambda: [made_reports.hostile()],
         "healthy": lambda: [made_reports.night()[2]]}
SUFFIX = {"text": "txt", "json": "json", "sarif": "sarif", "junit": "xml", "markdown": "md", "openmetrics": "om.txt",
          "allow": "allow.txt"}
pytestmark = pytest.mark.usefixtures("build")


def numsan(*arguments, cwd=None, status=0):
    done = subprocess.run([run_numsan.COMMAND, *map(str, arguments)], capture_output=True, cwd=cwd, timeout=60,
                          env=run_numsan.plain_environment())
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, done
    return done


def formats(command):
    """Name -> what it is, by the table of the documentation."""
    rows = re.findall(r"^\| (\w+) \| (.*?) \| (.*?) \|$", numsan("table", "formats").stdout, re.MULTILINE)
    return {name: meaning for name, commands, meaning in rows[1:] if command in commands.split(", ")}


@pytest.fixture
def converted(tmp_path):
    """Converts a case; the paths in what is made do not depend on the machine."""
    def convert(case, name):
        made_reports.write(tmp_path / "night", CASES[case]())
        done = numsan("report", "night", "--format", name, cwd=tmp_path)
        assert done.stderr == ""
        return done.stdout
    return convert


def test_every_format_is_covered_here():
    assert set(formats("report")) == set(SUFFIX) | {"html"}, "pages have test_html.py"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [name for name in SUFFIX if name != "json"])
def test_golden(converted, case, name):
    made, path = converted(case, name), GOLDEN / f"{case}.{SUFFIX[name]}"
    if os.environ.get("NUMSAN_WRITE_GOLDEN"):
        path.write_text(made)
    assert made == path.read_text()


@pytest.mark.parametrize("case", CASES)
def test_json_is_passed_on_whole(converted, case):
    reports = CASES[case]()
    assert json.loads(converted(case, "json")) == (reports if len(reports) > 1 else reports[0])


@pytest.mark.parametrize("case", CASES)
def test_sarif_fits_its_schema(converted, case):
    document = json.loads(converted(case, "sarif"))
    jsonschema.Draft4Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(document)
    run, = document["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_says_where_and_what(converted):
    run, = json.loads(converted("night", "sarif"))["runs"]
    first, second = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"], place["region"]["startLine"]) == (
        {"uri": "losses.py", "uriBaseId": "SRCROOT"}, 31)
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == "file:///home/user/job/"
    assert first["partialFingerprints"] == {"numsan/v1": "3f1c2a9be07d"}
    properties = first["properties"]
    assert (first["occurrenceCount"], properties["ranks"], properties["step"]) == (2, "ranks 0-1", 409)
    assert first["relatedLocations"][0]["message"]["text"] == "backward started from here"
    assert first["locations"][0]["logicalLocations"][0] == {"fullyQualifiedName": "model.head", "kind": "module"}
    assert (first["level"], second["level"]) == ("error", "warning")
    assert [one["executionSuccessful"] for one in run["invocations"]] == [True, True, True, False]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    table = numsan("table", "mechanisms").stdout
    assert rules == re.findall(r"^\| (NS\d+) \|", table, re.MULTILINE)


def test_sarif_of_odd_files(converted):
    run, = json.loads(converted("hostile", "sarif"))["runs"]
    named, nowhere, string = run["results"]
    uri = named["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[\w%./~-]+", uri, re.ASCII) and unquote(uri) == "dir: 100%/l össes#1.py"
    program = nowhere["locations"][0]["physicalLocation"]["artifactLocation"]  # no line is known
    assert re.fullmatch(r"[\w%./~*'()@-]+", program["uri"], re.ASCII) and program["uriBaseId"] == "SRCROOT"
    assert string["locations"][0]["physicalLocation"]["artifactLocation"] == program
    assert run["tool"]["driver"]["rules"][string["ruleIndex"]]["id"] == "NS999"


@pytest.mark.parametrize("case", CASES)
def test_junit_fits_its_schema(converted, case):
    schema = xmlschema.XMLSchema(HERE / "schemas/junit-10.xsd")
    schema.validate(ElementTree.fromstring(converted(case, "junit").encode()))


def test_junit_has_a_case_for_each_rank(converted):
    suites = ElementTree.fromstring(converted("night", "junit").encode())
    suite, = suites
    assert suites.attrib == {"name": "numsan", "tests": "4", "failures": "2", "errors": "0", "time": "124.100"}
    assert [case.get("name") for case in suite] == [f"train.py, rank {rank}" for rank in range(4)]
    states = [[element.tag for element in case] for case in suite]
    assert states == [["failure", "system-out"]] * 2 + [["system-out"], ["skipped", "system-out"]]
    assert "= category:" in suite[0][0].text and "underflow:" in suite[1][1].text
    assert suite[0][0].get("type") == "NS102"


def test_junit_fails_by_what_the_run_was_told_to_fail_on(tmp_path):
    report = made_reports.night()[1]
    del report["findings"][0]
    for fail_on, failures in [("error", 0), ("warning", 1)]:
        report["run"]["options"]["fail_on"] = fail_on
        path, = made_reports.write(tmp_path, [report])
        suites = ElementTree.fromstring(numsan("report", path, "--format", "junit").stdout)
        assert suites.get("failures") == str(failures)


def test_junit_tells_programs_of_one_name_apart(tmp_path):
    made_reports.write(tmp_path / "r", [made_reports.example()] * 3)
    names = re.findall(r'<testcase classname="numsan" name="(.*?)"',
                       numsan("report", tmp_path / "r", "--format", "junit").stdout)
    assert names == ["train.py", "train.py (2)", "train.py (3)"]


def families_of(text):
    return {family.name: family for family in openmetrics.text_string_to_metric_families(text)}


@pytest.mark.parametrize("case", CASES)
def test_open_metrics_are_parsed(converted, case):
    families = families_of(converted(case, "openmetrics"))
    reports = CASES[case]()
    by_severity = families["numsan_findings"].samples
    assert sum(sample.value for sample in by_severity) == sum(len(report["findings"]) for report in reports)
    assert [sample.value for sample in families["numsan_steps"].samples] == [r["run"]["steps"] for r in reports]
    assert {sample.labels["host"] for sample in families["numsan_run"].samples} == {
        r["run"]["host"].replace("\u0007", "?") for r in reports}


def test_open_metrics_of_a_night(converted):
    families = families_of(converted("night", "openmetrics"))
    codes = [(s.labels["rank"], s.labels["code"], s.labels["category"], s.value)
             for s in families["numsan_findings_by_code"].samples]
    assert codes == [("0", "NS102", "N3", 1), ("1", "NS102", "N3", 1), ("1", "NS105", "N3", 1)]
    assert [round(s.value, 3) for s in families["numsan_scan_ratio"].samples] == [0.027] * 3
    assert [s.labels["numsan_verdict"] for s in families["numsan_verdict"].samples if s.value] == [
        "findings", "findings", "clean", "incomplete"]


def seen_of(markdown):
    """What a reader sees: the text of the page that the markdown becomes."""
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    return html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\u200b", "")


def test_markdown_shows_words_as_they_are(converted):
    markdown = converted("hostile", "markdown")
    words = made_reports.HOSTILE.replace("\u0007", "?")
    table, text = markdown[:markdown.index("<details>")], markdown[markdown.index("<details>"):]
    cells = seen_of(table).split("\n")
    assert words.replace("`c`", "c") in cells, cells  # the title, with its operator as code
    assert words in cells, cells  # the module, which is a name
    assert f"102 |     {words}" in seen_of(text).split("\n"), text
    assert "@team" not in re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    rows = [line for line in table.split("\n") if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}


def test_markdown_fits_a_comment_and_says_what_is_left_out(tmp_path):
    report = made_reports.example()
    report["findings"] = [made_reports.finding(number) for number in range(200)]
    path, = made_reports.write(tmp_path, [report])
    markdown = numsan("report", path, "--format", "markdown").stdout
    assert 40000 < len(markdown) < 65536
    rows, texts = markdown.count("\n| error"), markdown.count("<details>")
    assert markdown.endswith(
        f"\nleft out for their length: {200 - rows} further findings\n"
        f"\nleft out for their length: the text of {rows - texts} findings of the table\n\n`numsan report` shows all\n")


def test_help_and_documents_name_the_formats():
    known = formats("report")
    text = re.sub(r"\s+", " ", numsan("report", "--help").stdout)
    for name, meaning in known.items():
        assert f"{name}: {meaning}" in text
    document = (run_numsan.REPO / "docs/reports-in-ci.md").read_text()
    assert all(f"--format {name}" in document for name in known if name not in ("text", "json"))


@pytest.mark.parametrize("command, name, expected", [
    ("report", "sarrif", "format 'sarrif': expected text, json, html, sarif, junit, markdown, openmetrics or "
                         "allow; did you mean 'sarif'?"),
    ("diff", "junit", "format 'junit': expected text, json or markdown; did you mean 'text'?")])
def test_unknown_format(command, name, expected):
    files = ["a", "b"][:1 if command == "report" else 2]
    assert numsan(command, *files, "--format", name, status=2).stderr == f"numsan: {expected}\n"


def test_a_folder_is_read_in_the_order_of_its_numbers(tmp_path):
    reports = [made_reports.example(rank=rank) for rank in range(12)]
    made_reports.write(tmp_path / "r", reports, "rank-{}.json")
    (tmp_path / "r" / "notes.txt").write_text("no report")
    (tmp_path / "r" / "deeper.json").mkdir()
    shown = json.loads(numsan("report", tmp_path / "r", "--format", "json").stdout)
    assert [report["run"]["rank"] for report in shown] == list(range(12))


def test_files_that_are_no_reports_are_skipped_in_a_folder(tmp_path):
    made_reports.write(tmp_path / "r", [made_reports.example()])
    (tmp_path / "r" / "config.json").write_text('{"lr": 0.1}')
    (tmp_path / "r" / "lines.json").write_text('{"a": 1}\n{"a": 2}\n')
    done = numsan("report", "r", cwd=tmp_path)
    assert done.stderr == (
        'numsan: skipped r/config.json: byte 0: not a numsan report: there is no "schema" '
        '(expected "numsan.report/1")\n'
        "numsan: skipped r/lines.json: byte 10: not JSON: syntax error while parsing value - unexpected '{'; "
        "expected end of input\n")
    assert "1 finding" in done.stdout


WHOLE = json.dumps(made_reports.EXAMPLE)


@pytest.mark.parametrize("text, reason", [
    ("", "byte 0: the file is empty"),
    (WHOLE[:300], "byte 301: not JSON: "),
    (WHOLE.replace("numsan.report/1", "numsan.report/2"), 'not a numsan report: "schema" is "numsan.report/2"'),
    (WHOLE.replace('"findings": [', '"findings": [7, '), "damaged report: finding 1 is not an object"),
    (WHOLE.replace('"coverage": {', '"coverage": [], "was": {'), 'damaged report: "coverage" is not an object'),
], ids=["empty", "cut", "later version", "finding", "coverage"])
@pytest.mark.parametrize("as_folder", [False, True])
def test_damaged_reports_are_an_error_everywhere(tmp_path, text, reason, as_folder):
    paths = made_reports.write(tmp_path / "r", [made_reports.example()] * 2)
    paths[1].write_text(text)
    given = ["r"] if as_folder else ["r/numsan-0.json", "r/numsan-1.json"]
    done = numsan("report", *given, "-o", "out", "--format", "junit", cwd=tmp_path, status=2)
    assert done.stderr.startswith("numsan: r/numsan-1.json: ") and reason in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "out").exists()


def test_what_cannot_be_read_at_all(tmp_path):
    (tmp_path / "empty").mkdir()
    assert numsan("report", "empty", cwd=tmp_path, status=2).stderr == (
        "numsan: empty: there is no report (*.json) in this folder\n")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "a.json").write_text("[]")
    assert numsan("report", "foreign", cwd=tmp_path, status=2).stderr == (
        "numsan: skipped foreign/a.json: byte 0: not a numsan report: the file holds array\n"
        "numsan: foreign: there is no report in it\n")
    (tmp_path / "big.json").open("wb").truncate(300 << 20)
    assert numsan("report", "big.json", cwd=tmp_path, status=2).stderr == (
        "numsan: big.json: byte 268435456: not a numsan report: longer than 256 MiB\n")
    assert "cannot be read: No such file" in numsan("report", "gone.json", cwd=tmp_path, status=2).stderr


def test_a_large_foreign_file_of_a_folder_is_skipped(tmp_path):
    made_reports.write(tmp_path / "r", [made_reports.example()])
    (tmp_path / "r" / "data.json").open("wb").truncate(300 << 20)
    done = numsan("report", "r", cwd=tmp_path)
    assert done.stderr == "numsan: skipped r/data.json: byte 268435456: not a numsan report: longer than 256 MiB\n"
    assert "error[NS102]" in done.stdout


def test_a_large_report_is_read(tmp_path):
    text = json.dumps(made_reports.example())
    with (tmp_path / "large.json").open("w") as file:
        file.write(text[:-1])
        for _ in range(264):
            file.write(" " * (1 << 20))
        file.write("}")
    assert "error[NS102]" in numsan("report", "large.json", cwd=tmp_path).stdout


def test_of_many_bad_files_twenty_are_named(tmp_path):
    paths = made_reports.write(tmp_path, [made_reports.example()] * 30)
    for path in paths:
        path.write_text("")
    lines = numsan("report", tmp_path, status=2).stderr.splitlines()
    assert len(lines) == 21 and lines[-1] == "numsan: 10 further files likewise"


def test_a_file_that_is_named_twice_is_read_once(tmp_path):
    path, = made_reports.write(tmp_path, [made_reports.example()])
    assert numsan("report", path, path).stdout.count("error[NS102]") == 1


PROGRAM = """
import torch
model = torch.nn.Linear(4, 1)
torch.nn.init.constant_(model.weight, 0.25)
loss = torch.log(model(torch.ones(8, 4) * -9)).mean()
other = (model(torch.zeros(2, 4)) - model.bias).norm()
(loss + other).backward()
with torch.no_grad():
    for p in model.parameters():
        p -= 0.01 * p.grad
"""


def test_suggested_lines_are_read(converted, warm, tmp_path):
    """Of odd files and of findings without a line, too: a line that an allow-list refuses is complained of."""
    (tmp_path / "allow.txt").write_text(converted("hostile", "allow"))
    (tmp_path / "program.py").write_text("import torch; torch.ones(2).sum()")
    done = run_numsan.run(tmp_path / "program.py", cwd=tmp_path, options={"allow": "allow.txt"})
    assert "the line is ignored" not in done.stderr and "allow-list rules that matched nothing" in done.stderr


def test_suggested_lines_silence_the_findings(warm, tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "pro gram.py").write_text(PROGRAM)
    before = run_numsan.run(folder / "pro gram.py", cwd=folder)
    assert before.findings, before.describe()
    numsan("report", before.report_path, "--format", "allow", "-o", folder / "allow.txt")
    rules = [line for line in (folder / "allow.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(rules) == len(before.findings)
    after = run_numsan.run(folder / "pro gram.py", cwd=folder, options={"allow": "allow.txt"})
    assert after.findings == [] and "matched nothing" not in after.stderr, after.describe()
    assert {entry["rule"] for entry in after.report["suppressed"]} == set(rules)
