# What the scripts share: where the checkout is, which Python, how to say what is going on. Sourced, never run.
# shellcheck shell=bash
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
PYTHON="${NUMSAN_PYTHON:-$ROOT/.venv/bin/python}"

# What was compiled before, in any build folder, is taken from the cache where there is one (scripts/setup --dev).
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER="${CMAKE_C_COMPILER_LAUNCHER:-ccache}"
    export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}"
    export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros}" # headers that a target precompiles
fi

say() { echo "[$(basename "$0")] $*"; }
die() {
    echo "[$(basename "$0")] error: $*" >&2
    exit 1
}

# Prints those of the given requirements ("name==version") that $PYTHON does not have in that version.
missing_requirements() {
    "$PYTHON" - "$@" <<'PYTHON'
import importlib.metadata
import sys

for requirement in sys.argv[1:]:
    name, _, version = requirement.partition("==")
    try:
        found = importlib.metadata.version(name.partition("[")[0])
    except importlib.metadata.PackageNotFoundError:
        found = ""
    if not found or (version and found.partition("+")[0] != version):
        print(requirement)
PYTHON
}

# Prints the requirements of a requirements file, one a line, without comments and without those of files it names.
read_requirements() { sed -e 's/#.*//' -e '/^-r/d' -e 's/[[:space:]]//g' -e '/^$/d' "$1"; }

# shellcheck source=scripts/dependencies
source "$ROOT/scripts/dependencies"
