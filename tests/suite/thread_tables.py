"""The tables of docs/categories: real threads of one root cause, with what was wrong there and what mended it. They are
those of which threads/ has programs, of open families only, and those of other_threads.json where these are too few."""
import functools
import json

import manifest as manifests
import markers

OTHERS = manifests.SUITE / "threads" / "other_threads.json"
MOST = 5


def address(thread):
    """Of `owner/repo#number`, which GitHub finds under this name whether it is an issue or a pull request."""
    repository, _, number = thread.partition("#")
    return thread if thread.startswith("http") else f"https://github.com/{repository}/issues/{number}"


def chosen(programs, category):
    """At most MOST programs of a category: of each kind of fix the first, then the others, in order."""
    known = [one for one in programs if one["category"] == category and not one["frozen"]]
    first = {one["fix_kind"]: one for one in reversed(known)}
    known.sort(key=lambda one: first[one["fix_kind"]] is not one)
    return sorted(known[:MOST], key=lambda one: one["id"])


def others():
    return json.loads(OTHERS.read_text())


def thread_rows(programs, more, category):
    """[(thread, file of its program or None, what was wrong, what mended it)]"""
    rows = [(one["thread"], one["file"], one["story"].rstrip("."), one["fix"]) for one in chosen(programs, category)]
    rows += [(one["thread"], None, one["wrong"], one["fix"]) for one in more if one["category"] == category]
    return rows[:MOST]


def table(category, _):
    yield "| thread | what was wrong | what mended it | program |"
    yield "| --- | --- | --- | --- |"
    for thread, file, wrong, fix in thread_rows(manifests.build(name="threads")[0]["programs"], others(), category):
        program = f"[{file.split('/')[1].split('_')[0]}](../../tests/suite/{file})" if file else ""
        yield f"| [{thread}]({address(thread)}) | {wrong} | {fix} | {program} |"


BLOCKS = tuple((f"docs/categories/{name}.md", f"threads {name}", functools.partial(table, name))
               for name in markers.CATEGORIES)
