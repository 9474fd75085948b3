#!/usr/bin/env python3
"""Checks the direction of #include lines: which folder may include which, and where a third-party header may appear.

    scripts/check_layers.py [ROOT]

Prints one line a violation; exit status 1 when there is one. The tables below are the layers; ARCHITECTURE.md draws
them.
"""

import re
import sys
from pathlib import Path

# Folder -> folders (or single headers) it may include, besides itself.
BELOW_ANALYZE = ("host/base", "host/log", "host/ops", "host/scan", "host/options", "host/stacks")
LAYERS = {
    "host/base": (),
    "host/log": (),
    "host/ops": ("host/base",),
    "host/scan": ("host/base",),
    "host/options": ("host/base",),
    "host/stacks": ("host/base",),
    "host/analyze": BELOW_ANALYZE,
    "host/report": (*BELOW_ANALYZE, "host/analyze"),
    "host/event": (*BELOW_ANALYZE, "host/analyze"),
    "host/device": (*BELOW_ANALYZE, "host/analyze", "host/event"),
    "host/session": (*BELOW_ANALYZE, "host/analyze", "host/report", "host/event", "host/device"),
    # Stands around a session: it writes down what goes in and comes out, and plays that into another one.
    "host/record": (*BELOW_ANALYZE, "host/analyze", "host/report", "host/session"),
    # Of the session only what a replay needs: no command runs in the program that is watched.
    "host/cli": ("host/base", "host/log", "host/options", "host/record", "host/analyze", "host/report"),
    "interpose/runtime": (
        *BELOW_ANALYZE,
        "host/record",
        "host/analyze",
        "host/report",
        "host/session",
        "interpose/cupti",
        "interpose/nvtx",
        "interpose/python",
        "cuda/cuda_device_scanner.h",
    ),
    "interpose/python": ("host/base", "host/stacks"),
    "interpose/preload": ("interpose/runtime/stub_abi.h",),
    "interpose/torch": ("host/base", "host/ops"),
    "interpose/cupti": ("host/base", "cuda/scan_table.h"),
    "interpose/nvtx": (),
    "cuda": ("host/base",),
}

# First part of a third-party header's path -> the only folders that may include it.
THIRD_PARTY = {
    "ATen": ("interpose/torch",),
    "c10": ("interpose/torch",),
    "torch": ("interpose/torch",),
    "Python.h": (),
    "CLI": ("host/cli",),
    "fmt": ("host/log",),
    "spdlog": ("host/log",),
    "nlohmann": ("host/report", "host/cli"),
    "zlib.h": ("host/record",),
    "gtest": (),
    "gmock": (),
    "benchmark": (),
}

# Folders whose sources are C: no header of the C++ library.
C_ONLY = ("interpose/preload",)

SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".def", ".inc", ".S", ".in"}
INCLUDE = re.compile(r"""^\s*#\s*include(?:_next)?\s*(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)""")


def layer_of(path):
    """The layer that a path (relative to the root) belongs to, or None."""
    matches = [layer for layer in LAYERS if path == layer or path.startswith(layer + "/")]
    return max(matches, key=len) if matches else None


def is_allowed(layer, target):
    return any(target == rule or target.startswith(rule + "/") for rule in (layer, *LAYERS[layer]))


def check_include(root, source, layer, name):
    """The reason why a source of the layer may not include `name`, or None."""
    if layer_of(name):
        return None if is_allowed(layer, name) else f"{layer} may not include {layer_of(name)}"
    beside = (source.parent / name).resolve()
    if beside.is_file() and beside.is_relative_to(root):
        inside = beside.relative_to(root).as_posix()
        if layer_of(inside):
            return None if is_allowed(layer, inside) else f"{layer} may not include {layer_of(inside)}"
    first = name.split("/")[0]
    if first in THIRD_PARTY:
        owners = THIRD_PARTY[first]
        return None if layer in owners else f"only {' and '.join(owners) or 'nobody'} may include {first}"
    if first in ("host", "interpose", "cuda", "tests"):
        return f"{layer} may not include {name}: it is in no layer"
    if layer in C_ONLY and not name.endswith(".h"):
        return f"{layer} is C: <{name}> is not a header of libc"
    return None


def violations(root):
    """Yields one line of text a violation, in order of path and line."""
    for top in ("cuda", "host", "interpose"):
        for source in sorted((root / top).rglob("*")):
            if source.suffix not in SUFFIXES or not source.is_file():
                continue
            path = source.relative_to(root).as_posix()
            layer = layer_of(path)
            if layer is None:
                yield f"{path}: in no layer: add its folder to scripts/check_layers.py"
                continue
            for number, line in enumerate(source.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                name = match["quoted"] or match["angled"]
                reason = check_include(root, source, layer, name)
                if reason:
                    yield f"{path}:{number}: {name}: {reason}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(violations(root))
    for line in found:
        print(line)
    print(f"layers: {len(found)} violations" if found else "layers: every include points the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
