"""docs/categories: a page for each root cause, whose report is what numsan prints, whose first program has that root
cause and whose second has none."""
import re
import subprocess

import pytest
import category_pages
import run_numsan
import shown
from category_pages import FOLDER, PAGES

SECTIONS = ["How to recognise it", "Real threads", "What numsan shows", "What to change", "What it is taken for"]
CATEGORIES = re.findall(r'^NUMSAN_CATEGORY\("(\w+)", "\S+", "([^"]+)"',
                        (run_numsan.REPO / "host/finding/categories.def").read_text(), re.M)


def test_there_is_a_page_for_each_category_and_the_list_names_it():
    listed = re.findall(r"^\| \[(\w+)\]\((\w+\.md)\) \| (.+?) \|", (FOLDER / "README.md").read_text(), re.M)
    assert listed == [(name, f"{name}.md", title) for name, title in CATEGORIES]
    assert {path.name for path in FOLDER.glob("*.md")} == {"README.md", *(page for _, page, _ in listed)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_whole(page):
    text = page.read_text()
    assert text.startswith(f"# {page.stem}: ") and 60 <= len(text.splitlines()) <= 120
    assert re.findall(r"^## (.*)$", text, re.M) == SECTIONS
    threads = re.search(r"<!-- table threads (\w+) -->\n(.*?)<!-- end table -->", text, re.S)
    assert threads[1] == page.stem and len(threads[2].splitlines()) == 2 + 5
    others = {name for name, _ in CATEGORIES} - {page.stem}
    told = re.findall(r"^\| \[(\w+)\]\(\1\.md\) \|", text.split("## What it is taken for")[1], re.M)
    assert len(told) >= 2 and set(told) <= others


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_report_is_what_numsan_prints(page, warm):
    program, report = category_pages.reported(page)
    assert f"= category: {page.stem} " in report
    assert category_pages.essence(category_pages.printed(program)) == category_pages.essence(report), \
        "tests/docs/category_pages.py --write takes over what numsan prints"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_program_has_it_and_the_second_nothing(page, warm, tmp_path):
    written = category_pages.programs(page)
    assert list(written) == ["before.py", "after.py"]
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    sick = run_numsan.run_watched_fork(tmp_path / "before.py", cwd=tmp_path)
    assert sick.returncode == 0 and len(sick.findings) == 1, sick.describe()
    assert sick.findings[0]["category"]["id"] == page.stem, sick.describe()
    healthy = run_numsan.run_watched_fork(tmp_path / "after.py", cwd=tmp_path, clean=True)
    assert healthy.returncode == 0 and not healthy.findings, healthy.describe()


@pytest.mark.parametrize("old, new, same", [
    ("= when: step 3, forward, op 12 345 (aten::log)", "= when: step 3, forward, op 99 (aten::log)", True),
    ("= category: N4 loss (0.59); next N2 unsafe (0.13)", "= category: N4 loss (0.61); next N3 slope (0.2)", True),
    ("input[0] float32[3] 0 .. 1.25", "input[0] float32[3] 0 .. 1.26", True),
    ("= category: N4 loss (0.59)", "= category: N2 unsafe (0.59)", False),
    ("help: use `x.clamp(min=1)`", "help: use `x.clamp(max=1)`", False),
    ("12 | y = x.log()", "13 | y = x.log()", False),
])
def test_what_is_compared(old, new, same):
    assert (category_pages.essence(old) == category_pages.essence(new)) == same


def test_explain_names_the_pages(build):
    for name, _ in CATEGORIES:
        page = subprocess.run([run_numsan.COMMAND, "explain", name], capture_output=True, text=True, check=True).stdout
        assert f"    {shown.name_of(FOLDER / f'{name}.md')}: " in page
