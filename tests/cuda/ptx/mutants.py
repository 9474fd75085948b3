#!/usr/bin/env python3
"""Changes one instruction of the kernels' PTX at a time, and looks whether the tests see it.

usage: mutants.py --build BUILD [--architecture 90] [--count 40] [--seed 1] [--kernel numsan_scan_small]

Prints the changes that no test sees: each is a gap in the tests, or makes no difference. Exits 1 where there are more
than --survivors. Takes seconds for a change that is seen and a minute for one that is not.
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
TESTS = "-*Exhaustive*:*EveryAlignmentAndSmallSize*:Machine*:Instructions*"


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


def mutations(lines, kernel):
    """(number of the line, what takes its place) of each change that can be made."""
    begin = next(i for i, line in enumerate(lines) if f".entry {kernel}(" in line)
    end = next(i for i in range(begin, len(lines)) if lines[i] == "}")
    for number in range(begin, end):
        line = lines[number]
        if "t1" in line.split("//")[0].replace("%", " "):
            continue  # of inline assembly: a line is half of it
        for make in (swapped, other_number, left_out, other_way):
            for changed in make(line):
                yield number, changed


def sees(chosen, lines, folder):
    """Whether a test fails with these lines, or they are no program."""
    ptx, source, library = folder / "mutant.ptx", folder / "mutant.cpp", folder / "mutant.so"
    ptx.write_text("\n".join(lines))
    for made in ([sys.executable, HERE / "translate.py", ptx, source, "--namespace", "mutant"],
                 ["g++", "-std=c++20", "-O1", "-w", "-fPIC", "-shared", f"-I{ROOT}", "-o", library, source]):
        if subprocess.run(made).returncode != 0:
            return True
    command = [chosen.build / "bin" / "numsan_ptx_tests", "--gtest_brief=1", "--gtest_fail_fast",
               f"--gtest_filter={TESTS}"]
    try:
        done = subprocess.run(command, env={**os.environ, "NUMSAN_PTX": str(library)}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=chosen.timeout)
    except subprocess.TimeoutExpired:
        return True  # it loops
    return done.returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--architecture", default="90")
    parser.add_argument("--kernel", default="numsan_scan_small")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--survivors", type=int, default=0, help="how many may stay unseen")
    parser.add_argument("--timeout", type=float, default=600)
    chosen = parser.parse_args()
    ptx = chosen.build / "tests/cuda/ptx" / f"scan_kernel_{chosen.architecture}.ptx"
    lines = ptx.read_text().split("\n")
    all_of_them = list(mutations(lines, chosen.kernel))
    picked = random.Random(chosen.seed).sample(all_of_them, min(chosen.count, len(all_of_them)))
    unseen = []
    with tempfile.TemporaryDirectory(prefix="numsan-mutants-") as folder:
        if sees(chosen, lines, pathlib.Path(folder)):
            sys.exit(f"{ptx}: a test fails, or it cannot be built, without any change")
        for at, (number, changed) in enumerate(picked, 1):
            seen = sees(chosen, lines[:number] + [changed] + lines[number + 1:], pathlib.Path(folder))
            print(f"{at}/{len(picked)} line {number + 1}: {lines[number].strip()} -> {changed.strip()}: "
                  f"{'seen' if seen else 'NOT SEEN'}", flush=True)
            if not seen:
                unseen.append(number + 1)
    print(f"{len(picked) - len(unseen)} of {len(picked)} changes seen, of {len(all_of_them)} that can be made; "
          f"seed {chosen.seed}")
    return len(unseen) > chosen.survivors


if __name__ == "__main__":
    sys.exit(main())
