"""The carried folder: what the build needs of the distribution's packages, for a machine that has neither them nor a
network. Laid out as below / (usr/include, usr/lib/...), so that the packages' own CMake files find their parts."""
import json
import os
import pathlib
import re
import shutil
import subprocess

FACTS = "carried.json"
LIMIT_MB = 40
NOT_WANTED = re.compile(r"/(doc|man|pkgconfig|lintian|bug)/")


class CannotPack(Exception):
    """One line for the user."""


def packages(dependencies):
    """Development packages that scripts/dependencies names. Python's are those of the machine that builds."""
    names = re.findall(r'^    "([\w.+-]+): ', dependencies, re.MULTILINE)
    return [name for name in names
            if name.endswith("-dev") and not name.startswith("python") or name.startswith("libjs-")]


def wanted(paths):
    """Of a package's files those that compile and link: headers, CMake files, and libraries where a CMake file names
    them, or zlib's archive, which has none; and the script that HTML reports have in them."""
    files = [path for path in paths if not NOT_WANTED.search(path) and not os.path.isdir(path)]
    described = any("/cmake/" in path for path in files)
    libraries = [path for path in files if re.search(r"\.a$|\.so(\.|$)", path)]
    named = libraries if described else [path for path in libraries if path.endswith("/libz.a")]
    scripts = [path for path in files if path.endswith("/chart.js/chart.min.js")]
    return [path for path in files if "/include/" in path or "/cmake/" in path] + scripts + named


def with_targets(path):
    """The path, and what it leads to where it is a link: another package may have that."""
    chain = [path]
    while os.path.islink(chain[-1]):
        target = os.path.normpath(os.path.join(os.path.dirname(chain[-1]), os.readlink(chain[-1])))
        if target in chain:
            break
        chain.append(target)
    return chain


def shipped(package):
    """(version, files) of an installed package."""
    version = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
    listed = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True)
    if version.returncode != 0 or listed.returncode != 0:
        raise CannotPack(f"package {package} is not installed: scripts/setup --tests --dev installs it")
    return version.stdout, listed.stdout.splitlines()


def pack(folder, dependencies, commit):
    """Fills `folder`, which is made anew, and returns its facts. Raises CannotPack."""
    if shutil.which("dpkg") is None:
        raise CannotPack("there is no dpkg here: pack on Debian or Ubuntu, after scripts/setup")
    folder = pathlib.Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / FACTS).exists():
        raise CannotPack(f"{folder} exists and is not a carried folder: name another")
    shutil.rmtree(folder, ignore_errors=True)
    versions = {}
    for package in packages(dependencies):
        versions[package], files = shipped(package)
        for path in {link for file in wanted(files) for link in with_targets(file)}:
            copy = folder / path.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)  # plain files: a link may not survive the journey
    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    if size > LIMIT_MB << 20:
        raise CannotPack(f"{folder} has {size / (1 << 20):.1f} MB, more than {LIMIT_MB}")
    facts = {"commit": commit, "packages": versions, "bytes": size}
    (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n")
    return facts


def facts_of(folder):
    """What pack() wrote of the folder. Raises CannotPack where it is none."""
    try:
        return json.loads((pathlib.Path(folder) / FACTS).read_text())
    except (OSError, ValueError) as error:
        raise CannotPack(f"{folder} is not a carried folder: {error}") from None
