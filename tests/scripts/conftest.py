"""A machine of which only the scripts are real: packages, apt, sudo, compilers and Pythons are made up."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
TOOLS = ("bash", "env", "sed", "grep", "sort", "dirname", "basename", "rm", "mkdir", "cat", "touch", "head", "tr", "sh",
         "chmod", "date", "id", "true", "tee", "tail", "wc", "uname", "sleep",
         "renice", "timeout")

APT_GET = """
for word; do last=$word; case "$word" in install) installs=1 ;; update) updates=1 ;; esac; done
[ -z "$updates" ] || { [ ! -e "$MACHINE/offline" ] || { echo 'E: no network' >&2; exit 100; }; touch "$MACHINE/lists"; }
[ -n "$installs" ] || exit 0
seen=
for word; do
    if [ "$word" = install ]; then seen=1; continue; fi
    case "$seen$word" in
    1-*) ;;
    1*) grep -qx "$word" "$MACHINE/no_such_package" && { echo "E: Unable to locate package $word" >&2; exit 100; }
        echo "$word" >> "$MACHINE/packages" ;;
    esac
done
"""
APT_CACHE = """
echo "$2:"
if [ ! -e "$MACHINE/lists" ] || grep -qx "$2" "$MACHINE/no_such_package"; then echo '  Candidate: (none)'
else echo '  Candidate: 1.0'; fi
"""
DPKG = """
grep -qx "$2" "$MACHINE/packages" && echo 'Status: install ok installed'
"""
SUDO = """
[ -e "$MACHINE/sudoers" ] || exit 1
[ "$1" = -n ] && shift
exec "$@"
"""
PYTHON = """
case "$*" in
--version) echo 'Python 3.11.2' ;;
'-m venv '*) mkdir -p "$3/bin"; cat "$0" > "$3/bin/python"; chmod +x "$3/bin/python" ;;
'-m pip --version') echo pip ;;
'-m pip install '*) for word; do case "$word" in *==*) echo "$word" >> "$MACHINE/requirements" ;; esac; done ;;
'-c import torch'*) [ ! -e "$MACHINE/no_torch" ] && echo 2.11.0 ;;
'- '*) shift; for word; do grep -qx -- "$word" "$MACHINE/requirements" || echo "$word"; done ;;
*) echo "ran $*"; exit 3 ;;
esac
"""


class Machine:
    """A copy of the scripts, a PATH of its own, and what is installed there."""

    def __init__(self, folder):
        self.folder, self.bin, self.root = folder, folder / "bin", folder / "checkout"
        self.bin.mkdir(parents=True)
        shutil.copytree(ROOT / "scripts", self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "tests").mkdir()
        shutil.copy(ROOT / "tests/requirements.txt", self.root / "tests")
        for name in ("packages", "no_such_package", "requirements", "calls"):
            (folder / name).touch()
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, text in (("apt-get", APT_GET), ("apt-cache", APT_CACHE), ("dpkg", DPKG), ("sudo", SUDO),
                           ("python3", PYTHON)):
            self.program(name, text)
        for path in [folder, *folder.rglob("*")]:  # the user that is not root writes here, too
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o666 | (0o111 if path.is_dir() else 0))

    def program(self, name, text, folder=None):
        """A shell script on the machine's PATH, whose calls are noted."""
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >> "$MACHINE/calls"\n{text}')
        path.chmod(0o755)
        return path

    def run(self, script, *arguments, root=True, **environment):
        """Runs scripts/SCRIPT, as root where we are root and it is wanted."""
        variables = {"PATH": str(self.bin), "MACHINE": str(self.folder), "HOME": str(self.folder), **environment}
        user = None if root or os.geteuid() != 0 else NOBODY
        return subprocess.run([self.root / "scripts" / script, *map(str, arguments)], capture_output=True, text=True,
                              env=variables, cwd=self.folder, user=user, timeout=60, stdin=subprocess.DEVNULL)

    def lines(self, name):
        return (self.folder / name).read_text().split("\n")[:-1]

    def installed(self):
        return set(self.lines("packages"))

    def calls(self, program):
        """How `program` was called since the start."""
        return [line.partition(" ")[2] for line in self.lines("calls") if line.split()[0] == program]

    def without(self, *names):
        for name in names:
            (self.bin / name).unlink()


@pytest.fixture
def machine(tmp_path):
    for folder in [tmp_path, *tmp_path.parents]:
        if str(folder).startswith("/tmp/") and not folder.stat().st_mode & 0o001 and os.geteuid() == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    return Machine(tmp_path / "machine")


@pytest.fixture
def root_machine(machine):
    """One whose user may install: root, or where the tests are not run by root, one who may sudo."""
    (machine.folder / "sudoers").touch()
    return machine
