"""python -m numsan: becomes the command that was installed with this package."""
import os
import signal
import sys
from importlib import metadata
from pathlib import Path


def command():
    """The path of the command, as pip wrote it down when it installed it; None where there is none."""
    for file in metadata.files("numsan") or ():
        if file.parts[-2:] == ("bin", "numsan"):
            path = Path(file.locate()).resolve()
            return str(path) if path.exists() else None
    return None


def environment():
    """What Python was started with: in the C locale it sets LC_CTYPE for itself and its children."""
    variables = dict(os.environb)
    try:
        before = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return variables
    variables.pop(b"LC_CTYPE", None)
    variables.update(entry.split(b"=", 1) for entry in before if entry.startswith(b"LC_CTYPE="))
    return variables


def main():
    path = command()
    if path is None:
        sys.exit("numsan: the command is missing beside this Python; pip install --force-reinstall numsan brings it")
    for name in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a program that is watched need not
        signal.signal(name, signal.SIG_DFL)
    os.execve(path, ["numsan", *sys.argv[1:]], environment())


if __name__ == "__main__":
    main()
