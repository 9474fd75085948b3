#!/usr/bin/env python3
"""Shows what is in a wheel of numsan, by parts, and which systems it is for. Called by scripts/wheel.

    scripts/wheel_contents.py WHEEL AUDITWHEEL [MARKDOWN]

auditwheel is asked about the wheel without its adapters, which need the torch of the program that loads them; what
those ask of the system's own libraries is shown, too. Exit status 1 when the wheel is for no manylinux system.
"""
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PARTS = (
    ("the command", r"\.data/scripts/"),
    ("libnumsan.so", r"/libnumsan\.so$"),
    ("libnumsan_core.so, with the device code", r"/libnumsan_core\.so$"),
    ("the adapter's sources", r"/lib/numsan/adapter/"),
    ("Python of `numsan replay`", r"/lib/numsan/replay/"),
    ("licences", r"/licenses/|/doc/numsan/"),
    ("manual page and completion", r"/share/"),
    ("package and metadata", r""),
)
ADAPTER = re.compile(r"/prebuilt/libnumsan_torch-(.+)-[0-9a-f]{16}-[0-9a-f]{16}\.so$")


def part_of(name):
    adapter = ADAPTER.search(name)
    if adapter:
        return f"adapter for torch {adapter[1]}"
    return next(part for part, pattern in PARTS if re.search(pattern, name))


def contents(wheel):
    """{part: [files, bytes, bytes in the wheel]}, by name of the first file."""
    parts = {}
    for info in sorted(wheel.infolist(), key=lambda info: info.filename):
        row = parts.setdefault(part_of(info.filename), [0, 0, 0])
        for column, more in enumerate((1, info.file_size, info.compress_size)):
            row[column] += more
    return parts


def newest_symbols(path):
    """The newest version of each of the C and C++ libraries' symbols that a library needs: "GLIBC_2.36"."""
    text = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
    newest = {}
    for name, version in re.findall(r"\((GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\)", text):
        numbers = tuple(map(int, version.split(".")))
        newest[name] = max(newest.get(name, numbers), numbers)
    return ", ".join(f"{name}_{'.'.join(map(str, numbers))}" for name, numbers in sorted(newest.items()))


def audited(auditwheel, path):
    """The tag that auditwheel finds, and all that it says."""
    said = subprocess.run([auditwheel, "show", path], capture_output=True, text=True)
    text = " ".join((said.stdout + said.stderr).split())
    tags = re.findall(r'"((?:manylinux|linux)_[a-z0-9_]+)"', text)
    return (tags[0] if tags else "none"), text


def write_without_adapters(wheel, path):
    """auditwheel looks for all files that RECORD lists."""
    with zipfile.ZipFile(path, "w") as rest:
        for name in wheel.namelist():
            data = wheel.read(name)
            if name.endswith(".dist-info/RECORD"):
                rows = data.decode().splitlines(keepends=True)
                data = "".join(row for row in rows if not ADAPTER.search(row.split(",")[0])).encode()
            if not ADAPTER.search(name):
                rest.writestr(name, data)


def main():
    path, auditwheel = Path(sys.argv[1]), sys.argv[2]
    lines = [f"{path.name}: {path.stat().st_size / 1e6:.1f} MB", "", "| part | files | MB | MB in the wheel |",
             "| --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as wheel:
        for part, (files, size, packed) in contents(wheel).items():
            lines.append(f"| {part} | {files} | {size / 1e6:.2f} | {packed / 1e6:.2f} |")
        without = Path(folder, path.name)
        write_without_adapters(wheel, without)
        tag, said = audited(auditwheel, without)
        lines += ["", f"auditwheel, without the adapters: {tag}"]
        for name in sorted(wheel.namelist()):
            if name.endswith(".so") or "/scripts/" in name:
                wheel.extract(name, folder)
                lines.append(f"* {part_of(name)} needs {newest_symbols(Path(folder, name))}")
    print("\n".join(lines))
    if len(sys.argv) > 3:
        Path(sys.argv[3]).write_text("\n".join(lines) + "\n")
    if not tag.startswith("manylinux"):
        print(f"wheel: for no manylinux system: {said}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
