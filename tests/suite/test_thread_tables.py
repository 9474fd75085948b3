"""The threads that docs/categories lists: five of each root cause, of open families, each once."""
import pytest

import manifest
import markers
import thread_tables

pytestmark = pytest.mark.quick


def program(number, category="N2", fix_kind="eps", frozen=False):
    return {"id": f"t{number:03d}", "file": f"threads/t{number:03d}_x.py", "category": category, "fix_kind": fix_kind,
            "frozen": frozen, "thread": f"a/b#{number}", "story": "A story.", "fix": "a fix"}


def test_one_of_each_kind_of_fix_comes_first():
    programs = [program(1), program(2), program(3), program(4, fix_kind="where"), program(5), program(6),
                program(7, fix_kind="data"), program(8, frozen=True, fix_kind="mask"), program(9, category="N3")]
    assert [one["id"] for one in thread_tables.chosen(programs, "N2")] == ["t001", "t002", "t003", "t004", "t007"]


def test_others_fill_up():
    more = [{"category": "N2", "thread": f"c/d#{number}", "wrong": "w", "fix": "f"} for number in range(9)]
    rows = thread_tables.thread_rows([program(1)], more, "N2")
    assert rows[0] == ("a/b#1", "threads/t001_x.py", "A story", "a fix") and rows[1] == ("c/d#0", None, "w", "f")
    assert len(rows) == thread_tables.MOST


def test_threads_of_this_tree():
    programs, more = manifest.load(name="threads")["programs"], thread_tables.others()
    frozen = {one["thread"] for one in programs if one["frozen"]}
    for category in markers.CATEGORIES:
        rows = thread_tables.thread_rows(programs, more, category)
        assert len(rows) == thread_tables.MOST, category
        assert len({thread for thread, *_ in rows}) == len(rows), category
        assert not frozen & {thread for thread, *_ in rows}, category


def test_other_threads_are_labelled_as_programs_are():
    more, programs = thread_tables.others(), manifest.load(name="threads")["programs"]
    for one in more:
        assert list(one) == ["category", "thread", "wrong", "fix"] and one["category"] in markers.CATEGORIES
        assert markers.THREAD.fullmatch(one["thread"]), one
        assert all(one[key] and not one[key].endswith(".") and "|" not in one[key] for key in ("wrong", "fix")), one
    threads = [one["thread"] for one in more]
    assert len(set(threads)) == len(threads) and not set(threads) & {one["thread"] for one in programs}


def test_addresses():
    assert thread_tables.address("a/b#3") == "https://github.com/a/b/issues/3"
    assert thread_tables.address("https://c.d/e") == "https://c.d/e"
