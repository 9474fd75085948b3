#!/usr/bin/env python3
"""Counts the instructions that the quick pass spends on 16 bytes, in the unrolled loops of a compiled kernel.

    tests/cuda/sass_count.py FATBIN [--cuobjdump TOOL] [--architecture sm_90] [--function numsan_scan_small]

Exit status 1 when, on sm_90, a loop over 16- or 32-bit lanes is missing or takes more than the design's 14.
"""

import argparse
import sys

from sass import packet_loops

DESIGN = 14.0  # three AND, max3, add-min and their like for four words, the load, a quarter of the loop's own
UNROLL = 4
FUSED = ("VIADDMNMX.U16x2", "VIADDMNMX.U32")  # the fused minimum of 16-bit and of 32-bit lanes on cc 9.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("fatbin")
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument("--function", default="numsan_scan_small")
    options = parser.parse_args()
    loops = [
        loop
        for loop in packet_loops(options.cuobjdump, options.fatbin, options.architecture, options.function)
        if loop.packets == UNROLL
    ]
    rows = sorted((len(loop.opcodes) / loop.packets, loop.operation) for loop in loops)
    print(f"{options.function} {options.architecture}: instructions per 16-byte load")
    for count, operation in rows:
        print(f"  {count:6.2f}  {operation}")
    fused = {operation: count for count, operation in reversed(rows) if operation in FUSED}
    if options.architecture != "sm_90":
        return 0
    print(f"design: {DESIGN:g} for 16-bit and 32-bit lanes; here {', '.join(f'{fused.get(op)} {op}' for op in FUSED)}")
    return 0 if all(fused.get(op, DESIGN + 1) <= DESIGN for op in FUSED) else 1


if __name__ == "__main__":
    sys.exit(main())
