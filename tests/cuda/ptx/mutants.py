#!/usr/bin/env python3
"""Changes one instruction of the kernels' PTX at a time, and looks whether the tests see it.

usage: mutants.py --build BUILD [--architecture 90] [--count 40] [--seed 1 2] [--kernel numsan_scan_small]

Prints the changes that no test sees: each is a gap in the tests, or makes no difference. NOT RUN is a change of a line
that no test gets to. Exits 1 where there are more than --survivors. Takes seconds for a change that is seen and up to a
minute for one that is not: only the tests that get to its line are run.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SWAPPED = [("setp.lt", "setp.le"), ("setp.gt", "setp.ge"), ("setp.eq", "setp.ne"), ("add.", "sub."), ("min.", "max."),
           ("and.b", "or.b"), ("shl.", "shr.")]
LEFT_OUT = "-*Exhaustive*:*EveryAlignmentAndSmallSize*:Machine*:Instructions*:FloatingPoint*:Grid*"


def swapped(line):
    for one, other in SWAPPED:
        for before, after in ((one, other), (other, one)):
            if re.match(rf"(@!?%p\d+\s+)?{re.escape(before)}", line.strip()) and "volatile" not in line:
                yield line.replace(before, after, 1)


def other_number(line):
    """The last number among the operands, by one more."""
    match = re.search(r",\s*(-?\d+);", line)
    if match and not re.search(r"\bmov\.pred|shfl", line):
        yield line[:match.start(1)] + str(int(match[1]) + 1) + line[match.end(1):]


def left_out(line):
    if re.match(r"(bar\.sync|st\.|atom\.)", line.strip()):
        yield "\t// left out"


def other_way(line):
    if match := re.match(r"\s*@(!?)(%p\d+)", line):
        yield line.replace("@" + match[1] + match[2], "@" + ("" if match[1] else "!") + match[2], 1)


def make_no_difference(lines):
    """Numbers of the lines that nvcc adds to be faster, and of those whose other numbers do the same.

    A division of 64 bits becomes one of 32 where both operands are small: and, setp and bra choose, after an or. A
    butterfly over all lanes meets every lane with other distances, too, if the halves of the first are among them.
    """
    found = set()
    for number in range(len(lines) - 3):
        if re.search(r"and\.b64.*, -4294967296;", lines[number + 1]) and \
                re.search(r"setp\.\w+\.s64.*, 0;", lines[number + 2]):
            found.update(range(number if "or.b64" in lines[number] else number + 1, number + 4))
    butterfly = re.compile(r"shfl\.sync\.bfly\.b32\s+[^,]+, *[^,]+, *(%r\d+)")
    distances = {match[1] for line in lines if (match := butterfly.search(line))}
    found.update(number for number, line in enumerate(lines)
                 if (match := re.match(r"\s*mov\.u32\s+(%r\d+), 16;", line)) and match[1] in distances)
    return found


def extent(lines, kernel):
    begin = next(i for i, line in enumerate(lines) if f".entry {kernel}(" in line)
    return begin, next(i for i in range(begin, len(lines)) if lines[i] == "}")


def mutations(lines, kernel):
    """(number of the line, what takes its place) of each change that can be made."""
    begin, end = extent(lines, kernel)
    left_alone = make_no_difference(lines)
    for number in range(begin, end):
        line = lines[number]
        if number in left_alone:
            continue
        if "t1" in line.split("//")[0].replace("%", " "):
            continue  # of inline assembly: a line is half of it
        for make in (swapped, other_number, left_out, other_way):
            for changed in make(line):
                yield number, changed


class Tests:
    """Those of numsan_ptx_tests, and which of them run which line of the PTX."""

    def __init__(self, chosen, lines, folder):
        self.chosen, self.folder = chosen, folder
        self.program = chosen.build / "bin" / "numsan_ptx_tests"
        self.all, self.seconds = [], {}
        if not self.made(lines, ["--count"]):
            sys.exit("the PTX cannot be built without any change")
        report = folder / "lines"
        report.touch()
        if not self.pass_(["*"], {"NUMSAN_PTX_LINES": str(report)}):
            sys.exit("a test fails without any change")
        self.of = {}
        for line in report.read_text().splitlines():
            name, milliseconds, *covered = line.split()
            self.seconds[name] = int(milliseconds) / 1000
            for number in covered:
                self.of.setdefault(int(number), []).append(name)

    def made(self, lines, options=()):
        ptx, source, library = (self.folder / f"mutant.{end}" for end in ("ptx", "cpp", "so"))
        ptx.write_text("\n".join(lines))
        return all(subprocess.run(made).returncode == 0 for made in (
            [sys.executable, HERE / "translate.py", ptx, source, "--namespace", "mutant", *options],
            ["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-shared", f"-I{ROOT}", "-o", library, source]))

    def pass_(self, names, environment=()):
        limit = 60 + 20 * sum(map(self.seconds.get, names)) if self.seconds else None
        command = [self.program, "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={':'.join(names)}{LEFT_OUT}"]
        try:
            done = subprocess.run(command, env={**os.environ, "NUMSAN_PTX": str(self.folder / "mutant.so"),
                                                **dict(environment)},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit)
        except subprocess.TimeoutExpired:
            return False  # it loops
        return done.returncode == 0

    def verdict(self, lines, number):
        """Of a change of line `number`: whether a test fails with it, or it is no program."""
        names = sorted(self.of.get(number, []), key=self.seconds.get)
        if not names:
            return "NOT RUN"
        if not self.made(lines):
            return "seen"
        quick = 0
        while quick < len(names) and sum(map(self.seconds.get, names[:quick + 1])) < 2:
            quick += 1
        parts = [part for part in (names[:quick], names[quick:]) if part]
        return "NOT SEEN" if all(map(self.pass_, parts)) else "seen"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--architecture", default="90")
    parser.add_argument("--kernel", default="numsan_scan_small")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="each seed picks --count changes")
    parser.add_argument("--survivors", type=int, default=0, help="how many of a seed's changes may stay unseen")
    chosen = parser.parse_args()
    ptx = chosen.build / "tests/cuda/ptx" / f"scan_kernel_{chosen.architecture}.ptx"
    lines = ptx.read_text().split("\n")
    begin, end = extent(lines, chosen.kernel)
    first = next(number for number, line in enumerate(lines) if ".entry" in line)
    # The tests run the other kernel as it is.
    lines = [line if number < first or begin <= number <= end else "" for number, line in enumerate(lines)]
    all_of_them = list(mutations(lines, chosen.kernel))
    most = 0
    with tempfile.TemporaryDirectory(prefix="numsan-mutants-") as folder:
        tests = Tests(chosen, lines, pathlib.Path(folder))
        for seed in chosen.seed:
            picked = random.Random(seed).sample(all_of_them, min(chosen.count, len(all_of_them)))
            unseen = 0
            for at, (number, changed) in enumerate(picked, 1):
                verdict = tests.verdict(lines[:number] + [changed] + lines[number + 1:], number + 1)
                unseen += verdict != "seen"
                print(f"{at}/{len(picked)} line {number + 1}: {lines[number].strip()} -> {changed.strip()}: {verdict}",
                      flush=True)
            print(f"{len(picked) - unseen} of {len(picked)} changes seen, of {len(all_of_them)} that can be made; "
                  f"seed {seed}", flush=True)
            most = max(most, unseen)
    return most > chosen.survivors


if __name__ == "__main__":
    sys.exit(main())
