"""The documents hold together: links and paths resolve, lengths hold, lists name what there is."""
import json
import re
import subprocess

import pytest
import shown
from run_numsan import REPO

LINKED = [*shown.DOCUMENTS, *(path for path in sorted(REPO.glob("*.md")) if path not in shown.DOCUMENTS),
          *sorted((REPO / "tests").glob("*.md")), *sorted((REPO / "tests").glob("*/*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = ("cuda", "host", "interpose", "scripts", "tests", "docs", ".ci")
DECISIONS = sorted((REPO / "docs/decisions").glob("[0-9]*.md"))


def without_fences(document):
    return shown.FENCE.sub("", document.read_text())


def anchors(document):
    """Headings as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.*)$", without_fences(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def targets(document):
    """(link, path, anchor) of each relative link."""
    for link in LINK.findall(without_fences(document)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        yield link, (document.parent / path).resolve() if path else document, anchor


@pytest.mark.parametrize("document", LINKED, ids=shown.name_of)
def test_links_resolve(document):
    for link, path, anchor in targets(document):
        assert path.exists(), f"{document}: {link}: there is no {path}"
        assert not anchor or anchor in anchors(path), f"{document}: {link}: no such heading, there are {anchors(path)}"


@pytest.mark.parametrize("document", shown.DOCUMENTS, ids=shown.name_of)
def test_paths_in_sentences_exist(document):
    for text in re.findall(r"`([^`\s]+/[^`\s]*)`", without_fences(document)):
        if text.split("/")[0] not in FOLDERS:
            continue
        path = re.sub(r":\d+$", "", text)
        assert any(REPO.glob(path.rstrip("/"))), f"{document}: `{text}` is not there"


def test_each_document_is_reached_from_the_readme():
    reached, next_ones = set(), [REPO / "README.md"]
    while next_ones:
        document = next_ones.pop()
        if document in reached or document.suffix != ".md":
            continue
        reached.add(document)
        next_ones += [path for _, path, _ in targets(document)]
    assert not [shown.name_of(document) for document in shown.DOCUMENTS if document not in reached]


@pytest.mark.parametrize("name, most", [("README.md", 120), ("ARCHITECTURE.md", 150)])
def test_length(name, most):
    assert len((REPO / name).read_text().splitlines()) <= most


def test_decisions_are_numbered_and_listed():
    text = (REPO / "docs/decisions/README.md").read_text()
    listed = re.findall(r"^\| (\d+) \| \[(.*?)\]\((.*?)\) \| (\S+) \|$", text, re.MULTILINE)
    assert [name for _, _, name, _ in listed] == [path.name for path in DECISIONS]
    for number, (path, row) in enumerate(zip(DECISIONS, listed), 1):
        title, _, state, *rest = path.read_text().splitlines()
        assert path.name.startswith(f"{number:04d}-") and row[0] == str(number), path
        assert title == f"# {number}. {row[1]}", path
        assert state.startswith(f"{row[3]}. "), f"{path}: its date is not the list's"
        heads = [line for line in rest if line.startswith("## ")]
        assert heads[:3] == ["## Context", "## Decision", "## Consequences"], path
        assert len(rest) <= 25, f"{path}: {len(rest) + 3} lines"


def test_functions_of_a_nans_way_are_in_their_files():
    text = (REPO / "docs/a-nans-way.md").read_text()
    rows = re.findall(r"^\| \d+ \| `([\w:]+)` \| `([\w./]+)` \|", text, re.MULTILINE)
    assert len(rows) >= 30
    for function, file in rows:
        *scope, name = function.split("::")
        text = (REPO / file).read_text()
        owner = scope[0] if scope else ""
        defined = re.search(rf"\b{owner}::{name}\(" if owner else rf"\b{name}\(", text)
        inside = owner and re.search(rf"\b(class|struct) {owner}\b", text) and re.search(rf"\b{name}\(", text)
        assert defined or inside, f"{function} is not in {file}"


def test_the_table_of_targets_is_whole():
    """RESULTS.md begins with it, each target of the files has a row, each commit is one of this repository."""
    text = (REPO / "tests/bench/RESULTS.md").read_text()
    table = text.split("## All targets")[1].split("\n## ")[0]
    lines = [line.strip("|") for line in table.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[2:]]
    assert text.index("## All targets") < 40 and all(len(row) == 7 for row in rows)
    for name, file in (("suite", "targets.json"), ("threads", "threads/targets.json")):
        for key, limit in json.loads((REPO / "tests/suite" / file).read_text()).items():
            (bound, value), = limit.items()
            assert [row for row in rows if row[0] == f"{name}, {key}: {bound.replace('_', ' ')} {value}"], key
    measured_on_gpu = "Nothing has been measured on a GPU" not in text.split("<!-- gpu acceptance -->")[1]
    for target in json.loads((REPO / "scripts/gpu/gpu_targets.json").read_text())["targets"]:
        if target["target"].startswith("host,"):
            continue  # of the host: a row of its own above
        bound = f"at {'least' if target.get('least') else 'most'} {target['limit']}"
        row = next((row for row in rows if row[0] == f"H200: {target['target']}: {bound}"), None)
        assert row, f"no row for {target['target']}, {bound}"
        assert (row[1] == "not measured") != measured_on_gpu, row
    commits = {row[5] for row in rows if row[1] != "not measured"}
    known = subprocess.run(["git", "log", "--format=%h", "--abbrev=7"], cwd=REPO, capture_output=True, text=True)
    shallow = not known.stdout or len(known.stdout.split()) < 50
    for commit in commits:
        assert re.fullmatch(r"[0-9a-f]{7}", commit), commit
        assert shallow or commit in known.stdout.split(), f"{commit} is no commit of this repository"
