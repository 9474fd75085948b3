"""python -m numsan: becomes the command that was installed with this package."""
from __future__ import annotations

import os
import signal
import sys
import typing
from pathlib import Path

from ._command import installed


def environment() -> dict[bytes, bytes]:
    """What Python was started with: in the C locale it sets LC_CTYPE for itself and its children."""
    variables = dict(os.environb)
    try:
        before = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return variables
    variables.pop(b"LC_CTYPE", None)
    variables.update(entry.split(b"=", 1) for entry in before if entry.startswith(b"LC_CTYPE="))  # type: ignore[misc]
    return variables


def main() -> typing.NoReturn:
    path = installed()
    if path is None:
        sys.exit("numsan: the command is missing beside this Python; pip install --force-reinstall numsan brings it")
    for name in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a program that is watched need not
        signal.signal(name, signal.SIG_DFL)
    os.execve(path, ["numsan", *sys.argv[1:]], environment())


if __name__ == "__main__":
    main()
