"""The wheel: what is in it, and that a program is watched in an environment that has nothing but it and torch."""
import json
import pathlib
import platform
import re
import subprocess
import time
import zipfile

import pytest
import run_numsan

pytestmark = pytest.mark.xdist_group("wheel")  # it is made once
BUG = """import torch
w = torch.nn.Parameter(torch.ones(2))
(-w).log().sum().backward()  # BUG
print('done')
"""


def done(command, **more):
    """stdout of a command that must not fail."""
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=420, **more)
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(warm, tmp_path_factory):
    """Made of what scripts/build built, with the adapter for the torch of the tests, which the cache has."""
    folder = tmp_path_factory.mktemp("wheel")
    started = time.monotonic()
    environment = run_numsan.plain_environment({"NUMSAN_CACHE": str(run_numsan.CACHE)})
    done([run_numsan.PYTHON, "-m", "pip", "wheel", run_numsan.REPO, "--no-deps", "-q", "-w", folder,
          "--disable-pip-version-check", f"--config-settings=cmake.define.NUMSAN_BUILT={run_numsan.BUILD}",
          f"--config-settings=cmake.define.NUMSAN_PREBUILT_TORCH={run_numsan.PYTHON}",
          f"--config-settings=build-dir={folder}/build"],
         env=environment)
    found = list(folder.glob("*.whl"))
    assert len(found) == 1, found
    print(f"wheel: {found[0].stat().st_size / 1e6:.1f} MB in {time.monotonic() - started:.0f} s")
    return found[0]


class Environment:
    """A virtual environment that sees the torch of the tests, and no compiler."""

    def __init__(self, folder):
        self.folder, self.python = folder / "venv", folder / "venv/bin/python"
        done([run_numsan.PYTHON, "-m", "venv", "--without-pip", self.folder])
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = pathlib.Path(done([self.python, "-c", where]).strip())
        # Not installed there, as torch has gigabytes: found where it is.
        (self.packages / "torch_of_the_tests.pth").write_text(done([run_numsan.PYTHON, "-c", where]))
        self.home = folder / "home"
        self.home.mkdir()
        self.variables = run_numsan.plain_environment({"HOME": str(self.home), "PATH": str(folder / "venv/bin")})
        for name in ("CXX", "XDG_CACHE_HOME", "LC_CTYPE"):  # the last is set by the Python of the tests in the C locale
            self.variables.pop(name, None)

    def pip(self, *words):
        return done([run_numsan.PYTHON, "-m", "pip", "--disable-pip-version-check", "--python", self.python, *words])

    def run(self, *command, **more):
        return subprocess.run(list(map(str, command)), env={**self.variables, **more}, cwd=self.home, text=True,
                              capture_output=True, timeout=120)

    def files(self):
        """And folders of ours: pip leaves those of a prefix that others may use, such as share."""
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*")
                if "__pycache__" not in path.parts and (not path.is_dir() or "numsan" in path.name)}


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    made = Environment(tmp_path_factory.mktemp("environment"))
    made.before = made.files()
    made.pip("install", "--no-index", "--no-deps", "-q", wheel)
    (made.home / "buggy.py").write_text(BUG)
    return made


def finds_the_bug(environment, *command):
    """The seconds that it took."""
    report = environment.home / "report.json"
    report.unlink(missing_ok=True)
    started = time.monotonic()
    ran = environment.run(*command, "run", "--report", report, "--", environment.python, "buggy.py")
    seconds = time.monotonic() - started
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran
    assert "building the adapter" not in ran.stderr, ran
    lines = [found["location"]["line"] for found in json.loads(report.read_text())["findings"]]
    assert lines == [run_numsan.marked_line(environment.home / "buggy.py")], ran
    return seconds


def test_the_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        tag = archive.read(next(name for name in names if name.endswith(".dist-info/WHEEL"))).decode()
    libraries = "numsan-0.1.0.data/data/lib/numsan/"
    adapter = run_numsan.BUILD / "lib/adapter"
    sources = {f"{libraries}adapter/{path.relative_to(adapter).as_posix()}"
               for path in adapter.rglob("*") if path.is_file()}
    sources |= {f"{libraries}replay/{path.name}" for path in (run_numsan.BUILD / "lib/replay").iterdir()}
    prebuilt = {name for name in names if name.startswith(libraries + "prebuilt/")}
    assert len(prebuilt) == 1 and next(iter(prebuilt)).startswith(libraries + "prebuilt/libnumsan_torch-2."), prebuilt
    programs = {"numsan-0.1.0.data/scripts/numsan", libraries + "libnumsan.so", libraries + "libnumsan_core.so"}
    told = {f"numsan-0.1.0.dist-info/{name}"
            for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE")}
    package = {f"numsan/{path.name}" for path in (run_numsan.REPO / "python/numsan").iterdir() if path.is_file()}
    assert {"numsan/__init__.py", "numsan/pytest_plugin.py", "numsan/py.typed"} <= package
    shared = {f"numsan-0.1.0.data/data/share/{name}" for name in (
        "doc/numsan/LICENSE", "doc/numsan/NOTICE", "man/man1/numsan.1", "bash-completion/completions/numsan",
        "zsh/site-functions/_numsan")}
    assert names == sources | prebuilt | programs | told | package | shared
    assert {name for name in programs if not modes[name] & 0o111} == set(), "cannot be executed"
    assert "Tag: py3-none-linux_x86_64" in tag and "Root-Is-Purelib: false" in tag


def test_systems_that_it_is_for(wheel):
    """As docs/install.md says. Adapters need the torch of the program."""
    auditwheel = pathlib.Path(run_numsan.PYTHON).parent / "auditwheel"
    said = done([run_numsan.PYTHON, run_numsan.REPO / "scripts/wheel_contents.py", wheel, auditwheel])
    print(said)
    oldest = re.search(r"^auditwheel, without the adapters: manylinux_2_(\d+)_x86_64$", said, re.M)
    if platform.libc_ver()[1] != "2.36":
        pytest.skip(f"made with glibc {platform.libc_ver()[1]}; what docs/install.md says is of Debian 12's, 2.36")
    assert oldest and int(oldest[1]) <= 35, said


def test_bug_is_found_without_a_compiler(environment):
    assert environment.run(environment.python, "-c", "import shutil as s; print(s.which('c++'), s.which('g++'))"
                           ).stdout == "None None\n"
    started = time.monotonic()
    assert environment.run(environment.python, "buggy.py").returncode == 0
    alone = time.monotonic() - started
    seconds = finds_the_bug(environment, environment.folder / "bin/numsan")
    print(f"time to the first finding: {seconds:.1f} s, without numsan the program takes {alone:.1f} s")
    assert not (environment.home / ".cache").exists(), "a prebuilt adapter needs no cache"


def test_python_m_numsan(environment):
    finds_the_bug(environment, environment.python, "-m", "numsan")
    refused = environment.run(environment.python, "-m", "numsan", "run", "--tier", "fulll", "--", "true")
    assert refused.returncode == 2 and refused.stdout == "", refused


def test_python_m_numsan_leaves_the_program_as_it_is(environment):
    """Python ignores SIGPIPE and, in the C locale, sets LC_CTYPE: neither is for the program that is watched."""
    ask = "grep SigIgn /proc/self/status; echo ${LC_CTYPE-unset}"
    both = [environment.run(*command, "run", "--", "/bin/sh", "-c", ask, PATH="/bin", LC_ALL="", LANG="C")
            for command in ([environment.folder / "bin/numsan"], [environment.python, "-m", "numsan"])]
    assert both[0].stdout == both[1].stdout and both[0].stdout.endswith("\nunset\n"), both


def test_through_a_link(environment, tmp_path):
    """As pipx makes it."""
    (tmp_path / "numsan").symlink_to(environment.folder / "bin/numsan")
    finds_the_bug(environment, tmp_path / "numsan")


def test_another_prefix(environment, wheel, tmp_path):
    """As in conda's environments, where the prefix is the environment."""
    environment.pip("install", "--no-index", "--no-deps", "-q", "--ignore-installed", "--prefix", tmp_path, wheel)
    finds_the_bug(environment, tmp_path / "bin/numsan")


def test_doctor_and_version_name_the_prebuilt_adapter(environment):
    folder = environment.folder.resolve() / "lib/numsan/prebuilt"
    told = environment.run(environment.folder / "bin/numsan", "doctor", "--", environment.python)
    assert f"ok       adapter: prebuilt, {next(folder.iterdir())}\n" in told.stdout, told
    assert "ok       compiler: none of c++, g++, clang++ is there, and none is needed for this torch\n" in told.stdout
    torch = done([run_numsan.PYTHON, "-c", "from torch.version import __version__ as v; print(v)"]).strip()
    version = environment.run(environment.folder / "bin/numsan", "--version").stdout
    assert version == (f"numsan 0.1.0\nadapters: prebuilt for torch {torch}; for others compiled on first use, "
                       "and cached\n")


def test_uninstalled(wheel, tmp_path):
    """Nothing is left but the cache, which a prebuilt adapter does not even make."""
    made = Environment(tmp_path)
    before = made.files()
    made.pip("install", "--no-index", "--no-deps", "-q", wheel)
    assert len(made.files() - before) > 20
    made.pip("uninstall", "-q", "-y", "numsan")
    assert made.files() == before


@pytest.mark.parametrize("more, status, said", [
    (["-DSKBUILD=2", "-DSKBUILD_SCRIPTS_DIR=/s", "-DSKBUILD_DATA_DIR=/d"], 1,
     "nvcc was not found, and the wheel would have no CUDA engine"),
    (["-DSKBUILD=2", "-DSKBUILD_SCRIPTS_DIR=/s", "-DSKBUILD_DATA_DIR=/d", "-DNUMSAN_CUDA=OFF"], 0, ""),
    ([], 0, "nvcc was not found: numsan is built without its CUDA engine"),
    (["-DNUMSAN_CUDA=OFF"], 0, ""),
])
def test_no_nvcc_is_told(tmp_path, more, status, said):
    """A numsan without its CUDA engine is made for those only who ask for it, or are told."""
    ran = subprocess.run(["cmake", "-S", run_numsan.REPO, "-B", tmp_path, "-G", "Ninja", "-DNUMSAN_TESTS=OFF",
                          "-DNUMSAN_NVCC=", "--log-level=WARNING", *more], capture_output=True, text=True, timeout=120)
    complaint = " ".join(ran.stderr.split())
    assert (ran.returncode, said in complaint, bool(complaint)) == (status, True, bool(said)), ran


# Stands in for scikit-build-core, of which the tests' environment has none.
SCIKIT = """
def get_requires_for_build_wheel(settings): return ["ninja"]
def build_wheel(*more):
    import os
    return os.environ.get("CUDA_HOME")
build_sdist = get_requires_for_build_editable = get_requires_for_build_sdist = prepare_metadata_for_build_wheel = None
"""


def test_nvcc_comes_from_wheels_where_there_is_none(tmp_path):
    (tmp_path / "scikit_build_core").mkdir()
    (tmp_path / "scikit_build_core/__init__.py").write_text("")
    (tmp_path / "scikit_build_core/build.py").write_text(SCIKIT)
    fetched = tmp_path / "nvidia/cu13"
    (fetched / "bin").mkdir(parents=True)
    (fetched / "bin/nvcc").write_text("")
    ask = (f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(run_numsan.REPO / 'scripts')!r}]\n"
           "import sysconfig, wheel_backend as backend\n"
           f"sysconfig.get_path = lambda name: {str(tmp_path)!r}\n"
           "backend.TOOLKIT = '/nowhere'\n"
           "wants = backend.get_requires_for_build_wheel\n"
           "off = {'cmake.define.NUMSAN_CUDA': 'OFF'}\n"
           "print(len(wants()), wants()[1].split('==')[0], wants(off), backend.build_wheel('', off))\n"
           "print(backend.build_wheel(''))\n"
           f"backend.TOOLKIT = {str(fetched)!r}\n"
           "print(wants())\n")
    nowhere = {"PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}
    assert done([run_numsan.PYTHON, "-c", ask], env=nowhere).splitlines() == [
        "7 nvidia-cuda-nvcc ['ninja'] None", str(fetched), "['ninja']"]
