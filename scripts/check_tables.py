#!/usr/bin/env python3
"""Checks that the tables in README.md are the ones the program itself prints (`numsan table NAME`).

    scripts/check_tables.py [--write] [--readme README.md] [--numsan build/bin/numsan]

A table stands between `<!-- table NAME -->` and `<!-- end table -->`. With --write it is replaced; else a difference is
printed and the exit status is 1. Exit status 2: the program cannot be run, or a table has no place in the file.
"""

import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path

TABLES = ("options", "categories", "mechanisms")
ROOT = Path(__file__).resolve().parent.parent


def table_pattern(name):
    return re.compile(rf"(<!-- table {name} -->\n)(.*?)(<!-- end table -->)", re.DOTALL)


def printed_table(numsan, name):
    done = subprocess.run([numsan, "table", name], capture_output=True, text=True, check=True)
    return done.stdout.strip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="rewrite the tables instead of comparing them")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--numsan", type=Path, default=ROOT / "build/bin/numsan")
    args = parser.parse_args()

    before = after = args.readme.read_text()
    for name in TABLES:
        try:
            wanted = printed_table(args.numsan, name)
        except OSError as error:
            print(f"tables: cannot run {args.numsan}: {error.strerror}; scripts/build makes it")
            return 2
        except subprocess.CalledProcessError as error:
            print(f"tables: {args.numsan} table {name}: exit status {error.returncode}: {error.stderr.strip()}")
            return 2
        if len(table_pattern(name).findall(after)) != 1:
            print(f"tables: {args.readme}: expected the marker '<!-- table {name} -->' once, with its end")
            return 2
        after = table_pattern(name).sub(lambda match: match[1] + wanted + match[3], after)

    if before == after:
        print(f"tables: {args.readme} says what the program says")
        return 0
    if args.write:
        args.readme.write_text(after)
        print(f"tables: wrote {args.readme}")
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(args.readme), "numsan table", n=0)
    )
    print("tables: different; scripts/check_tables.py --write takes over what the program says")
    return 1


if __name__ == "__main__":
    sys.exit(main())
