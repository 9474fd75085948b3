#!/usr/bin/env python3
"""Checks the direction of #include lines: which folder may include which, that no files include each other in a circle,
and where a third-party header may appear; and that no folder has too many files to look through.

    scripts/check_layers.py [ROOT]

Prints one line a violation; exit status 1 when there is one. The tables below are the layers; ARCHITECTURE.md draws
them.
"""

import re
import sys
from collections import Counter
from pathlib import Path

# Folder -> folders (or single headers) it may include, besides itself.
BELOW = ("host/base", "host/log", "host/ops", "host/scan", "host/options", "host/stacks")
JUDGING = (*BELOW, "host/track", "host/finding", "host/cause", "host/birth", "host/verdict")
LAYERS = {
    "host/base": (),
    "host/log": (),
    "host/ops": ("host/base",),
    "host/scan": ("host/base",),
    "host/options": ("host/base",),
    "host/stacks": ("host/base",),
    "host/finding": BELOW,
    "host/track": BELOW,
    "host/cause": (*BELOW, "host/track", "host/finding"),
    "host/birth": (*BELOW, "host/track", "host/finding", "host/cause"),
    "host/verdict": (*BELOW, "host/track", "host/finding", "host/cause", "host/birth"),
    "host/report": (*BELOW, "host/track", "host/finding", "host/cause"),
    "host/explain": ("host/base", "host/options", "host/finding", "host/diagnosis/faults.h"),
    # Other documents of reports: none of it is part of what runs in a program.
    "host/format": ("host/base", "host/log", "host/options", "host/finding", "host/report", "host/explain",
                    "host/diagnosis"),
    "host/changes": ("host/base", "host/log", "host/options", "host/finding", "host/report", "host/format"),
    "host/ranks": ("host/base", "host/log", "host/options", "host/finding", "host/report", "host/format"),
    "host/dump": (*BELOW, "host/track", "host/finding", "host/report"),
    # What is measured of a training, and what that says.
    "host/diagnosis": (*BELOW, "host/track", "host/finding", "host/report"),
    "host/event": JUDGING,
    "host/device": (*JUDGING, "host/event"),
    "host/breaks": (*JUDGING, "host/event"),
    "host/perf": (*BELOW, "host/track", "host/finding"),
    # What programs without a framework do, as events.
    "host/kernels": ("host/base", "host/ops", "host/options", "host/stacks"),
    # What is known of the process itself.
    "host/process": (*BELOW, "host/finding", "host/report"),
    "host/session": (*JUDGING, "host/report", "host/dump", "host/event", "host/breaks", "host/perf", "host/device",
                     "host/diagnosis", "host/process"),
    # Stands around a session: it writes down what goes in and comes out, and plays that into another one.
    "host/record": (*JUDGING, "host/report", "host/event", "host/process", "host/session"),
    # Of the session only what a replay needs: no command runs in the program that is watched.
    "host/cli": ("host/base", "host/log", "host/options", "host/record", "host/finding", "host/cause", "host/report",
                 "host/diagnosis", "host/explain", "host/format", "host/changes", "host/ranks"),
    "interpose/runtime": (
        *JUDGING,
        "host/kernels",
        "host/process",
        "host/record",
        "host/report",
        "host/session",
        "interpose/adapter",
        "interpose/cupti",
        "interpose/debugger",
        "interpose/libraries",
        "interpose/nvtx",
        "interpose/python",
        "cuda/cuda_device_scanner.h",
    ),
    "interpose/libraries": ("host/base", "host/kernels"),
    # Between a session and the interpreter.
    "interpose/debugger": (*JUDGING, "host/event", "host/breaks", "host/report", "host/dump", "host/session",
                           "interpose/python"),
    # The runtime compiles adapters by it, and so does a program of the build.
    "interpose/adapter": ("host/base", "host/log", "host/options"),
    "interpose/python/api": ("host/base", "host/stacks"),
    "interpose/python/layout": ("interpose/python/api", "interpose/python/scripts.h"),
    "interpose/python/names": (
        "host/stacks",
        "interpose/python/api",
        "interpose/python/layout",
        "interpose/python/scripts.h",
    ),
    "interpose/python": ("host/base", "host/stacks"),
    "interpose/preload": ("interpose/runtime/stub_abi.h",),
    "interpose/torch/describe": ("host/base", "host/ops"),
    "interpose/torch/hold": ("host/base", "interpose/torch/describe"),
    "interpose/torch/hook": ("host/base", "interpose/torch/describe", "interpose/torch/hold"),
    "interpose/torch": ("host/base", "interpose/torch/hook", "interpose/torch/hold", "interpose/torch/describe"),
    "interpose/cupti": ("host/base", "cuda/kernel/scan_table.h"),
    "interpose/nvtx": (),
    "cuda/kernel": ("host/base",),
    "cuda": ("host/base",),
}

# A third-party header, or the first part of its path -> the only folders that may include it.
THIRD_PARTY = {
    "ATen": ("interpose/torch",),
    "c10": ("interpose/torch",),
    "torch": ("interpose/torch",),
    "Python.h": (),
    "cuda/atomic": ("cuda/kernel",),  # of the CUDA C++ standard library
    "CLI": ("host/cli",),
    "fmt": ("host/log",),
    "spdlog": ("host/log",),
    "nlohmann": ("host/report", "host/diagnosis", "host/dump", "host/format", "host/changes", "host/ranks"),
    "rapidjson": ("host/report",),
    "kainjow": ("host/format",),
    "zlib.h": ("host/record",),
    "gtest": (),
    "gmock": (),
    "benchmark": (),
}

# Folders whose sources are C: no header of the C++ library.
C_ONLY = ("interpose/preload",)

SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".def", ".inc", ".S", ".in"}
PARTS = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh"}
MOST_FILES = 25  # in one folder
INCLUDE = re.compile(r"""^\s*#\s*include(?:_next)?\s*(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)""")


def layer_of(path):
    """The layer that a path (relative to the root) belongs to, or None."""
    matches = [layer for layer in LAYERS if path == layer or path.startswith(layer + "/")]
    return max(matches, key=len) if matches else None


def is_allowed(layer, target):
    return any(target == rule or target.startswith(rule + "/") for rule in (layer, *LAYERS[layer]))


def check_include(root, source, layer, name):
    """The reason why a source of the layer may not include `name`, or None."""
    if name not in THIRD_PARTY and layer_of(name):
        return None if is_allowed(layer, name) else f"{layer} may not include {layer_of(name)}"
    beside = (source.parent / name).resolve()
    if beside.is_file() and beside.is_relative_to(root):
        inside = beside.relative_to(root).as_posix()
        if layer_of(inside):
            return None if is_allowed(layer, inside) else f"{layer} may not include {layer_of(inside)}"
    first = name if name in THIRD_PARTY else name.split("/")[0]
    if first in THIRD_PARTY:
        owners = THIRD_PARTY[first]
        inside = any(layer == owner or layer.startswith(owner + "/") for owner in owners)
        return None if inside else f"only {' and '.join(owners) or 'no folder'} may include {first}"
    if first in ("host", "interpose", "cuda", "tests"):
        return f"{layer} may not include {name}: it is in no layer"
    if layer in C_ONLY and not name.endswith(".h"):
        return f"{layer} is C: <{name}> is not a header of libc"
    return None


def sources(root):
    """Paths below the root of all that is checked, relative to it, in order."""
    found = [path for top in ("cuda", "host", "interpose") for path in (root / top).rglob("*") if path.is_file()]
    return sorted(path.relative_to(root).as_posix() for path in found if path.suffix in SUFFIXES)


def part_of(path):
    """The header and the source of one name are one part."""
    return str(Path(path).with_suffix("")) if Path(path).suffix in PARTS else path


def circles(root):
    """Yields the parts of each circle of includes, sorted."""
    after = {}
    for path in sources(root):
        part = after.setdefault(part_of(path), set())
        for line in (root / path).read_text(errors="replace").splitlines():
            match = INCLUDE.match(line)
            if match and match["quoted"] and (root / match["quoted"]).is_file():
                part.add(part_of(match["quoted"]))
    reach = {part: set() for part in after}  # what can be come to from a part
    for part in after:
        left = [part]
        while left:
            new = after.get(left.pop(), set()) - reach[part]
            reach[part] |= new
            left += new
    shown = set()
    for part in sorted(after):
        circle = {other for other in reach[part] - {part} if part in reach.get(other, ())}
        if circle and part not in shown:
            shown |= circle | {part}
            yield sorted(circle | {part})


def violations(root):
    """Yields one line of text a violation, in order of path and line."""
    for circle in circles(root):
        yield f"a circle of includes: {', '.join(circle)}"
    count = Counter(str(Path(path).parent) for path in sources(root))
    yield from (f"{folder}: {n} files, at most {MOST_FILES}" for folder, n in sorted(count.items()) if n > MOST_FILES)
    for path in sources(root):
        layer = layer_of(path)
        if layer is None:
            yield f"{path}: in no layer: add its folder to scripts/check_layers.py"
            continue
        for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = match["quoted"] or match["angled"]
            reason = check_include(root, root / path, layer, name)
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
