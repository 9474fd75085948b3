#!/usr/bin/env python3
"""The pages of docs/categories: the programs and the report that each shows.

    category_pages.py            checks that the reports are what numsan prints now; 1 where not
    category_pages.py --write    takes over what it prints

Compared is what does not depend on the arithmetic of a machine: not decimals, numbers of operators and later guesses.
The threads that the pages list are made by tests/suite/figures.py.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import run_numsan  # noqa: E402
import shown  # noqa: E402

FOLDER = run_numsan.REPO / "docs" / "categories"
PAGES = sorted(FOLDER.glob("N?.md"))
COMMAND = "build/bin/numsan run -- python "


def programs(page):
    """{"before.py": its text, "after.py": its text}"""
    found = {}
    for fence in shown.fences(page):
        if fence.language == "python":
            found[re.match(r"# (\S+)\n", fence.text)[1]] = fence.text
    return found


def reported(page):
    """(the program of which the page shows a report, the text that it shows)"""
    fences = shown.fences(page)
    commands = [i for i, fence in enumerate(fences) if fence.language == "sh"]
    assert len(commands) == 1, f"{page}: expected one command"
    command, report = fences[commands[0]], fences[commands[0] + 1]
    assert command.text.startswith(COMMAND), f"{page}:{command.line}: expected `{COMMAND}PROGRAM`"
    assert report.language == "text", f"{page}:{report.line}: expected a report"
    return command.text.removeprefix(COMMAND).strip(), report.text


def printed(program):
    """The first finding of a program as numsan prints it, from the root, so that paths are those of the page: in a
    fork, since tests/cli and tests/programs show that the command itself does so."""
    done = run_numsan.run_watched_fork(program, cwd=run_numsan.REPO)
    finding = r"^(error|warning)\[NS.*?(?=^(?:help: checkpoints|numsan:|error\[|warning\[))"
    found = re.search(finding, done.stderr, re.M | re.S)
    assert found, done.describe()
    return found[0]


def essence(report):
    """What a report says, without what depends on the machine's arithmetic."""
    report = re.sub(r"\(0\.\d\d\)(; next .*)?", "", report)
    report = re.sub(r"\bop [\d ]+\d ", "op N ", report)
    report = re.sub(r"-?\d+\.\d+(e[+-]\d+)?", "X", report)
    return [re.sub(r" +", " ", line).strip() for line in report.splitlines()]


def main():
    status = 0
    for page in PAGES:
        program, report = reported(page)
        now = printed(program)
        if essence(now) == essence(report):
            continue
        if "--write" in sys.argv[1:]:
            page.write_text(page.read_text().replace(f"```text\n{report}```", f"```text\n{now}```"))
            print(f"wrote {page}")
        else:
            print(f"{page}: numsan prints now:\n{now}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
