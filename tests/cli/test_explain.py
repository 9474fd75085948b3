"""The programs on the pages of `numsan explain`: each shows its subject, and mended nothing."""
import re

import pytest

import run_numsan
from explain_pages import HEALTHY, SICK, page_of, program_of, section_of

MARK = "# born here"
TABLES = run_numsan.REPO / "host" / "finding"


def rows_of(table, macro):
    """The first two columns of a table of what findings say."""
    rows = re.findall(macro + r'\("(\w+)", "?([\w-]+)"?', (TABLES / table).read_text())
    assert rows, f"{table} has no row"
    return rows


MECHANISMS = rows_of("mechanisms.def", "NUMSAN_MECHANISM")
CATEGORIES = rows_of("categories.def", "NUMSAN_CATEGORY")


def run_section(page, heading, folder):
    """The program under a heading, run under numsan: its file and what came of it."""
    program = folder / f"{heading.replace(' ', '_').replace(',', '')}.py"
    program.write_text(program_of(page, heading))
    return program, run_numsan.run_watched_fork(program, cwd=folder, clean=not marked(program))


def marked(program):
    """The numbers of the lines that the program says its finding is on."""
    lines = program.read_text().splitlines()
    return [number for number, text in enumerate(lines, 1) if MARK in text]


def check_sick(page, folder):
    """Runs the sick program; the findings on its marked line."""
    program, done = run_section(page, SICK, folder)
    lines = marked(program)
    assert done.returncode == 0 and done.report is not None, done.describe()
    unseen = section_of(page, "what numsan cannot see")
    if unseen:
        print(f"not shown by its own name: {unseen}")
    if not lines:
        assert unseen, f"the program marks no line, and the page does not say why\n{page}"
        assert done.findings == [], done.describe()
        return [], unseen, done
    assert len(lines) == 1, f"{len(lines)} lines are marked\n{page}"
    here = [found for found in done.findings if (found["location"] or {}).get("line") == lines[0]
            and found["location"]["file"].endswith(program.name)]
    assert here, f"no finding on line {lines[0]}\n{done.describe()}"
    assert done.findings[0] in here, f"line {lines[0]} is not first\n{done.describe()}"
    return here, unseen, done


def check_category(found, category, done):
    """The finding's root cause is the one that the page is about."""
    assert found["category"]["id"] == category, \
        f"the page of {category} shows a finding of {found['category']['id']}\n{done.describe()}"


@pytest.mark.parametrize("word", [name for name, _ in MECHANISMS + CATEGORIES])
def test_mended_program_is_silent(word, warm, tmp_path):
    _, done = run_section(page_of(word), HEALTHY, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.describe()
    assert done.report is not None and done.report["verdict"] == "clean", done.describe()
    assert done.report["coverage"]["ops"] > 0, "numsan saw no op: silence means nothing here"


@pytest.mark.parametrize("code, mechanism", MECHANISMS)
def test_page_of_a_mechanism_shows_it(code, mechanism, warm, tmp_path):
    here, unseen, done = check_sick(page_of(code), tmp_path)
    if not unseen:
        assert (here[0]["code"], here[0]["mechanism"]) == (code, mechanism), done.describe()


@pytest.mark.parametrize("category, slug", CATEGORIES)
def test_page_of_a_category_shows_it(category, slug, warm, tmp_path):
    page = page_of(category)
    assert page == page_of(slug)
    here, _, done = check_sick(page, tmp_path)
    check_category(here[0], category, done)
