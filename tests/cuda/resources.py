#!/usr/bin/env python3
"""Prints what the kernels of the fatbin take, and fails when one keeps anything in local memory.

    tests/cuda/resources.py FATBIN [--cuobjdump TOOL] [--architectures sm_75,sm_80,...]

Local memory means spilled registers, or arrays that the compiler could not keep in them: the scan would pay for it.
"""

import argparse
import sys

from sass import resources

# Registers of each: four blocks of 256 threads share the 65536 of an SM, or three.
KERNELS = {"numsan_scan_small": 64, "numsan_scan_large": 64, "numsan_look_small": 80, "numsan_look_large": 80}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("fatbin")
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("--architectures", default="sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120")
    options = parser.parse_args()
    found, faults = {}, []
    for architecture, function, used in resources(options.cuobjdump, options.fatbin):
        found.setdefault(architecture, set()).add(function)
        print(f"{architecture:7} {function:18} {used['REG']:3} registers, {used['SHARED']} bytes of shared memory")
        if used["STACK"] or used["LOCAL"]:
            amounts = f"{used['STACK']} bytes of stack, {used['LOCAL']} of local memory"
            faults.append(f"{function} on {architecture}: {amounts}")
        if used["REG"] > KERNELS[function]:
            faults.append(f"{function} on {architecture}: {used['REG']} registers, more than {KERNELS[function]}")
    for architecture in options.architectures.split(","):
        for function in sorted(KERNELS.keys() - found.get(architecture, set())):
            faults.append(f"{function} is missing for {architecture}")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
