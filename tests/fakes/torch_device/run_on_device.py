"""Runs a Python program on the test device: run_on_device.py [--default-device] PROGRAM [ARGUMENT...]

The device is known to torch before the program starts, and DEVICE names it, as the programs of tests/suite ask. With
--default-device it is torch's default device too, for programs that do not ask.
"""
import os
import runpy
import sys


def main(arguments):
    default = arguments[:1] == ["--default-device"]
    if default:
        arguments = arguments[1:]
    if not arguments:
        raise SystemExit(__doc__)
    import torch

    import fakegpu

    os.environ["DEVICE"] = fakegpu.NAME
    if default:
        torch.set_default_device(fakegpu.NAME)
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))  # as if Python had been given the program
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
