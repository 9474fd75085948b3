#!/usr/bin/env python3
"""Checks that the tables in README.md and docs/ are the ones the program itself prints (`numsan table NAME`).

    scripts/check_tables.py [--write] [--root FOLDER] [--numsan build/bin/numsan]

A table stands between `<!-- table NAME -->` and `<!-- end table -->`, in one document. With --write it is replaced;
else a difference is printed and the exit status is 1. Exit status 2: the program cannot be run, or no document or more
than one has a place for a table. Tables of other names are checked by tests/suite/figures.py.
"""

import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

TABLES = ("options", "categories", "mechanisms", "fixes", "formats", "thresholds", "evidence", "slow", "faults",
          "signals")
ROOT = Path(__file__).resolve().parent.parent


def table_pattern(name):
    return re.compile(rf"(<!-- table {name} -->\n)(.*?)(<!-- end table -->)", re.DOTALL)


def printed_table(numsan, name):
    done = subprocess.run([numsan, "table", name], capture_output=True, text=True, check=True)
    return done.stdout.strip("\n") + "\n"


def documents(root):
    """README.md and what lies in docs/, whose tables are checked."""
    return sorted([*root.glob("README.md"), *root.glob("docs/**/*.md")])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="rewrite the tables instead of comparing them")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of README.md and docs/")
    parser.add_argument("--numsan", type=Path, default=ROOT / "build/bin/numsan")
    args = parser.parse_args()

    before = {path: path.read_text() for path in documents(args.root)}
    after = dict(before)
    for name in TABLES:
        try:
            wanted = printed_table(args.numsan, name)
        except OSError as error:
            print(f"tables: cannot run {args.numsan}: {error.strerror}; scripts/build makes it")
            return 2
        except subprocess.CalledProcessError as error:
            print(f"tables: {args.numsan} table {name}: exit status {error.returncode}: {error.stderr.strip()}")
            return 2
        places = [path for path, text in after.items() for _ in table_pattern(name).findall(text)]
        if len(places) != 1:
            print(f"tables: expected the marker '<!-- table {name} -->' once, with its end, in README.md or docs/; "
                  f"it is there {len(places)} times")
            return 2
        after[places[0]] = table_pattern(name).sub(lambda match: match[1] + wanted + match[3], after[places[0]])

    changed = [path for path in before if before[path] != after[path]]
    if not changed:
        print(f"tables: {len(TABLES)} tables in {len(before)} documents are what the program prints")
        return 0
    for path in changed:
        if args.write:
            path.write_text(after[path])
            print(f"tables: wrote {path}")
            continue
        sys.stdout.writelines(difflib.unified_diff(before[path].splitlines(True), after[path].splitlines(True),
                                                   str(path), "numsan table", n=0))
    if args.write:
        return 0
    print("tables: different; scripts/check_tables.py --write takes over what the program prints")
    return 1


if __name__ == "__main__":
    sys.exit(main())
