"""The library that watches this process, where there is one: found among what is loaded, and never loaded here."""
from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import typing

PRELOADED = "libnumsan.so"
CORE = "libnumsan_core.so"
FUNCTIONS = ("numsan_scope", "numsan_decide", "numsan_report")
MOST_LOOKS = 64  # for a core that does not come though torch is there: each reads the list of what is mapped

_lock = threading.Lock()
_core: ctypes.CDLL | None = None
_looks = 0
_said = False


def _loaded(name: str) -> str | None:
    """The path of a library that is mapped into this process."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                fields = line.rstrip("\n").split(None, 5)
                if len(fields) == 6 and fields[5].endswith("/" + name):
                    return fields[5]
    except OSError:
        pass
    return None


_preloaded = _loaded(PRELOADED) is not None


def is_preloaded() -> bool:
    """numsan watches this process as soon as torch is imported, unless it was switched off."""
    return _preloaded


def _find() -> ctypes.CDLL | None:
    global _core, _looks
    if _core is not None or not _preloaded or "torch" not in sys.modules or _looks >= MOST_LOOKS:
        return _core
    with _lock:
        _looks += 1
        path = _loaded(CORE)
        if _core is None and path is not None:
            # By CDLL, which lets go of the interpreter's lock: numsan may ask Python for names meanwhile.
            found = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
            if all(hasattr(found, name) for name in FUNCTIONS):  # else it is of an older numsan
                found.numsan_scope.argtypes = [ctypes.c_char_p, ctypes.c_int]
                found.numsan_scope.restype = None
                found.numsan_decide.argtypes = []
                found.numsan_decide.restype = None
                found.numsan_report.argtypes = [ctypes.c_char_p, ctypes.c_int64]
                found.numsan_report.restype = ctypes.c_int64
                _core = found
    return _core


def is_attached_or_says_so() -> bool:
    """False where no call can do anything, which is said once. A program that has not imported torch yet is told
    nothing: numsan waits for that."""
    global _said
    if _find() is not None:
        return True
    with _lock:
        first = not _preloaded and not _said
        _said = _said or first
    if first:
        print("numsan: not attached, so calls of the module numsan do nothing: start the program with "
              "`numsan run -- python ...`", file=sys.stderr, flush=True)
    return False


def scope(name: str, begins: bool) -> None:
    """A scope of this name begins or ends on the calling thread."""
    core = _find()
    if core is not None:
        core.numsan_scope(name.encode(), int(begins))


def decide() -> None:
    """What waits for what the program does next is decided now."""
    core = _find()
    if core is not None:
        core.numsan_decide()


def report() -> dict[str, typing.Any] | None:
    """The report as it would be written now; None where nothing is watched."""
    core = _find()
    size = core.numsan_report(None, 0) if core is not None else -1
    while core is not None and size >= 0:
        room = ctypes.create_string_buffer(size)
        now = core.numsan_report(room, size)
        if now <= size:  # else a finding came between the two calls
            return json.loads(room.raw[:now]) if now >= 0 else None
        size = now
    return None
