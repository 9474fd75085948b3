"""Where the command `numsan` lies that belongs to this package."""
from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path


def installed() -> str | None:
    """As pip wrote it down when it installed this package; None where there is none."""
    try:
        files = metadata.files("numsan") or ()
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.parts[-2:] == ("bin", "numsan"):
            path = Path(str(file.locate())).resolve()
            return str(path) if path.exists() else None
    return None


def command() -> str | None:
    """The installed one, that of the build tree that this package lies in (NUMSAN_BUILD names another build folder), or
    the one on PATH."""
    tree = Path(__file__).resolve().parents[2]
    if not (tree / "python/numsan").is_dir():  # not in a build tree
        return installed() or shutil.which("numsan")
    built = Path(os.environ.get("NUMSAN_BUILD") or tree / "build").resolve() / "bin/numsan"
    return str(built) if built.exists() else shutil.which("numsan")
