#!/usr/bin/env python3
"""Counts the instructions that the quick pass spends on 16 bytes, in the unrolled loops of the compiled kernels.

    tests/cuda/sass_count.py FATBIN [--cuobjdump TOOL] [--architecture sm_90] [--function numsan_scan_small]...

Exit status 1 when, on sm_90, a kernel lacks a loop for a kind of lanes or a loop takes more than it may.
"""

import argparse
import sys

from sass import packet_loops

KERNELS = ["numsan_scan_small", "numsan_scan_large"]
UNROLL = 4
# What loops may take on cc 9.0, the cheapest first. For 16- and 32-bit lanes it is the design's: three AND, max3,
# add-min and their like for four words, the load, a quarter of the loop's own. The others have no fused or packed
# instruction of their own width: what the compiler made of them on 2026-11-26, rounded up.
MOST = [
    (14, "16-bit lanes"),
    (14, "32-bit lanes"),
    (24, "8-bit lanes"),
    (24, "8-bit lanes without a sign"),
    (26, "64-bit lanes"),
    (36, "8-bit lanes whose negative zero is NaN"),
]
FUSED = {"VIADDMNMX.U16x2", "VIADDMNMX.U32"}  # the minimum of 16- and 32-bit lanes on cc 9.0, minus one included


def faults(rows):
    """What is wrong with the loops of one kernel, as (instructions, operation), the cheapest first."""
    if len(rows) != len(MOST):
        yield f"{len(rows)} unrolled loops, expected one for each of {', '.join(kind for _, kind in MOST)}"
        return
    for (count, _), (most, kind) in zip(rows, MOST):
        if count > most:
            yield f"{count:.2f} instructions for {kind}, at most {most}"
    missing = FUSED - {operation for _, operation in rows[: len(FUSED)]}
    if missing:
        yield f"the cheapest loops have no {' and no '.join(sorted(missing))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("fatbin")
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument("--function", action="append")
    options = parser.parse_args()
    failed = False
    for function in options.function or KERNELS:
        loops = packet_loops(options.cuobjdump, options.fatbin, options.architecture, function)
        rows = sorted((len(one.opcodes) / one.packets, one.operation) for one in loops if one.packets == UNROLL)
        print(f"{function} {options.architecture}: instructions per 16-byte load")
        for count, operation in rows:
            print(f"  {count:6.2f}  {operation}")
        if options.architecture == "sm_90":
            for fault in faults(rows):
                print(f"{function}: {fault}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
