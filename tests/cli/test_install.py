"""cmake --install: the command finds its libraries under any prefix and library folder, and watches a program."""
import json
import os
import shlex
import shutil
import subprocess

import pytest
import run_numsan

BUG = "import torch\nw = torch.nn.Parameter(torch.ones(2))\n(-w).log().sum().backward()  # BUG\nprint('done')\n"

# Stands in for the command: what find_library() says, without the rest that takes long to compile.
FINDER = """
#include <cstdio>
#include "host/cli/process.h"
int main() {
    const numsan::cli::LibrarySearch search = numsan::cli::find_library();
    std::printf("%s\\n%s\\n", search.path.c_str(), search.places().c_str());
}
"""


def done(command, **more):
    """stdout of a command that must not fail."""
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, **more)
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def installed(warm, tmp_path):
    """A prefix with a blank-free name that no one configured."""
    prefix = tmp_path / "prefix"
    done(["cmake", "--install", run_numsan.BUILD, "--prefix", prefix])
    return prefix


def test_installed_command_watches_a_program(installed, tmp_path):
    program = tmp_path / "buggy.py"
    program.write_text(BUG)
    report = tmp_path / "report.json"
    environment = run_numsan.plain_environment({"NUMSAN_CACHE": str(run_numsan.CACHE)})
    ran = subprocess.run([installed / "bin/numsan", "run", "--report", report, "--", run_numsan.PYTHON, program],
                         capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=420)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran
    findings = json.loads(report.read_text())["findings"]
    assert [found["location"]["line"] for found in findings] == [run_numsan.marked_line(program)], ran.stderr


def test_nothing_of_the_build_is_needed(installed):
    """What is installed names no file of the build folder or the checkout, and brings the adapter's sources."""
    command = next(installed.glob("bin/numsan"))
    libraries = [path for path in files(installed) if path.endswith(".so")]
    assert len(libraries) == 2, libraries
    for path in [command, *(installed / name for name in libraries)]:
        assert "RUNPATH" not in done(["readelf", "-d", path]), path
        assert str(run_numsan.BUILD).encode() not in path.read_bytes(), path
    shipped = {path for path in files(run_numsan.BUILD / "lib/adapter")}
    folder = (installed / libraries[0]).parent / "adapter"
    assert files(folder) == shipped and "interpose/torch/adapter.cpp" in shipped
    replayed = {path.name for path in (run_numsan.REPO / "host/replay").glob("*.py")} | {"advice.def", "mechanisms.def"}
    assert files(folder.parent / "replay") == replayed and "replay_dump.py" in replayed


@pytest.mark.parametrize("library_folder", ["lib", "lib64", "lib/x86_64-linux-gnu"])
def test_library_folder_of_the_distribution(build, tmp_path, library_folder):
    """As distributions configure it. Only what looks for the library is compiled, as the build would compile it."""
    tree, prefix = tmp_path / "tree", tmp_path / "moved"
    done(["cmake", "-S", run_numsan.REPO, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DNUMSAN_TESTS=OFF",
          "-DNUMSAN_CUDA=OFF", "-DCMAKE_INSTALL_PREFIX=/usr", f"-DCMAKE_INSTALL_LIBDIR={library_folder}"])
    entry = next(one for one in json.loads((tree / "compile_commands.json").read_text())
                 if one["file"].endswith("host/cli/process.cpp"))
    compiler = shlex.split(entry["command"])
    flags = [word for word in compiler[1:] if word.startswith(("-D", "-I", "-std="))]
    (tmp_path / "finder.cpp").write_text(FINDER)
    (tree / "bin").mkdir(exist_ok=True)
    finder = tree / "bin/numsan"
    done([compiler[0], *flags, "-o", finder, tmp_path / "finder.cpp", entry["file"],
          run_numsan.REPO / "host/options/adapter_name.cpp"], cwd=entry["directory"])
    for name in ("libnumsan.so", "libnumsan_core.so"):
        shutil.copy(run_numsan.BUILD / "lib" / name, tree / "lib" / name)
    done(["cmake", "--install", tree, "--prefix", prefix])
    found, places = done([prefix / "bin/numsan"]).splitlines()
    assert found == str(prefix / library_folder / "numsan/libnumsan.so")
    os.remove(found)
    found, places = done([prefix / "bin/numsan"]).splitlines()
    assert found == "" and places.split(", ") == [
        f"{prefix}/bin/../lib/libnumsan.so", f"{prefix}/bin/../{library_folder}/numsan/libnumsan.so"]
