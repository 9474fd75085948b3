"""scripts/setup on a made-up machine: it installs what is missing and no more, and says exactly what it cannot."""
import re

import pytest

TESTS_ONLY = {"libgtest-dev", "libgmock-dev", "libbenchmark-dev", "valgrind", "clang-format-14", "clang-14",
              "libclang-rt-14-dev", "clang-tidy-14"}
NEEDED = {"g++", "cmake", "ninja-build", "python3-venv", "python3-dev", "nlohmann-json3-dev", "libfmt-dev",
          "libspdlog-dev", "libcli11-dev"}


def ok(done):
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.endswith("[setup] done\n"), done
    return done.stdout


@pytest.mark.parametrize("arguments", [[], ["--demo"]])
def test_nothing_for_tests_or_development(root_machine, arguments):
    ok(root_machine.run("setup", *arguments))
    assert NEEDED <= root_machine.installed() and not TESTS_ONLY & root_machine.installed()
    demo = [line for line in root_machine.lines("requirements") if not line.startswith("torch==")]
    assert bool(demo) == bool(arguments)
    assert not [line for line in demo if line.startswith("pytest")]


def test_tests_and_development_bring_their_own(root_machine):
    ok(root_machine.run("setup", "--tests"))
    assert {"libgtest-dev", "libgmock-dev", "valgrind", "clang-format-14", "clang-14"} <= root_machine.installed()
    assert not {"clang-tidy-14", "libbenchmark-dev"} & root_machine.installed()
    assert [line for line in root_machine.lines("requirements") if line.startswith("pytest==")]
    ok(root_machine.run("setup", "--dev"))
    assert {"clang-14", "clang-tidy-14", "libbenchmark-dev"} <= root_machine.installed()


@pytest.mark.parametrize("arguments", [[], ["--demo"], ["--demo", "--tests", "--dev"]])
def test_second_run_installs_nothing(root_machine, arguments):
    ok(root_machine.run("setup", *arguments))
    before = {name: root_machine.lines(name) for name in ("packages", "requirements")}
    gets, pips = len(root_machine.calls("apt-get")), len(root_machine.calls("python"))
    assert gets and pips
    text = ok(root_machine.run("setup", *arguments))
    assert {name: root_machine.lines(name) for name in ("packages", "requirements")} == before
    assert len(root_machine.calls("apt-get")) == gets
    assert not [call for call in root_machine.calls("python")[pips:] if "install" in call]
    assert "installing" not in text and "system packages: all there" in text


def test_only_what_is_missing(root_machine):
    ok(root_machine.run("setup"))
    kept = [name for name in root_machine.lines("packages") if name not in ("cmake", "ninja-build")]
    (root_machine.folder / "packages").write_text("".join(f"{name}\n" for name in kept))
    assert "[setup] system packages: installing cmake ninja-build\n" in ok(root_machine.run("setup"))
    assert sorted(root_machine.lines("packages")) == sorted([*kept, "cmake", "ninja-build"])


@pytest.mark.parametrize("arguments", [["--demo"], ["--tests"], ["--dev"]])
def test_distribution_without_the_formatter_and_clang(root_machine, arguments):
    gone = ["clang-format-14", "clang-14", "libclang-rt-14-dev", "clang-tidy-14"]
    (root_machine.folder / "no_such_package").write_text("".join(f"{name}\n" for name in gone))
    text = ok(root_machine.run("setup", *arguments))
    assert NEEDED <= root_machine.installed()
    said = re.findall(r"system packages: going without (\S+), which this distribution does not have\n", text)
    assert sorted(said) == sorted({"--demo": [], "--tests": gone[:3], "--dev": gone}[arguments[0]])
    gets = len(root_machine.calls("apt-get"))
    ok(root_machine.run("setup", *arguments))
    assert len(root_machine.calls("apt-get")) == gets, "lists are fetched again for what is not there"


def test_needed_package_that_is_not_there(root_machine):
    (root_machine.folder / "no_such_package").write_text("libcli11-dev\n")
    done = root_machine.run("setup")
    assert done.returncode == 1
    assert "E: Unable to locate package libcli11-dev\n" in done.stderr
    assert re.search(r"\[setup\] error: apt-get install .* failed: the lines above say why\n$", done.stderr), done


def test_without_network(root_machine):
    (root_machine.folder / "offline").touch()
    done = root_machine.run("setup")
    assert done.returncode == 1
    assert done.stderr == "E: no network\n[setup] error: apt-get update failed: the lines above say why\n"
    assert root_machine.installed() == set()


def test_neither_root_nor_sudo(machine):
    """The command to hand on is complete: who runs it has nothing left to ask."""
    done = machine.run("setup", "--tests", root=False)
    assert done.returncode == 1 and machine.calls("apt-get") == []
    reason, command = done.stderr.splitlines()
    assert reason == ("[setup] error: system packages are missing, and this is neither root nor allowed to sudo; "
                      "ask someone who is to run:")
    assert command.split()[:2] == ["apt-get", "install"]
    assert NEEDED | {"libgtest-dev", "valgrind"} <= set(command.split()[2:])
    (machine.folder / "packages").write_text("".join(f"{name}\n" for name in command.split()[2:]))
    text = ok(machine.run("setup", "--tests", root=False))
    assert "system packages: going without clang-format-14" in text and machine.calls("apt-get") == []


def test_sudo_without_a_password(machine):
    (machine.folder / "sudoers").touch()
    ok(machine.run("setup", root=False))
    assert NEEDED <= machine.installed()
    assert all(call.startswith("-n true") or "apt-get" in call for call in machine.calls("sudo"))
    assert len(machine.calls("sudo")) == 3


def test_without_apt(machine):
    machine.without("apt-get", "dpkg")
    done = machine.run("setup")
    assert done.returncode == 1 and "no apt here: expecting the equivalents of: g++ cmake" in done.stdout
    assert done.stderr == "[setup] error: g++ is missing: install it, then run this again\n"
    for name in ("g++", "cmake", "ninja"):
        machine.program(name, "")
    ok(machine.run("setup"))


@pytest.mark.parametrize("argument", ["--test", "demo", "--demo=1"])
def test_unknown_argument(machine, argument):
    done = machine.run("setup", argument)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"[setup] error: unknown argument '{argument}': expected --demo, --tests, --build-only or " \
                          "--dev\n"
    assert machine.lines("calls") == []


def test_help_names_every_argument(machine):
    done = machine.run("setup", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert {"--demo", "--tests", "--dev", "NUMSAN_PYTHON=/path/to/python"} <= set(re.split(r"[\s\[\]]+", done.stdout))
    assert machine.lines("calls") == []


@pytest.fixture
def own_python(root_machine):
    return root_machine.program("python", (root_machine.bin / "python3").read_text().partition("\n")[2],
                                root_machine.folder / "environment")


def test_own_python_is_used_and_left_alone(root_machine, own_python):
    text = ok(root_machine.run("setup", NUMSAN_PYTHON=str(own_python)))
    assert re.search(rf"\[setup\] python: {own_python} with torch 2\.11\.0 \(tested with torch==\S+\)\n", text)
    assert root_machine.lines("requirements") == [] and not (root_machine.root / ".venv").exists()


def test_own_python_lacks_what_the_demo_imports(root_machine, own_python):
    done = root_machine.run("setup", "--demo", NUMSAN_PYTHON=str(own_python))
    assert done.returncode == 1 and root_machine.lines("requirements") == []
    found = re.fullmatch(rf"\[setup\] error: {own_python} lacks what the demo imports: "
                         rf"{own_python} -m pip install (\S+==\S+) (\S+==\S+)\n", done.stderr)
    assert found, done.stderr
    (root_machine.folder / "requirements").write_text("\n".join(found.groups()) + "\n")
    ok(root_machine.run("setup", "--demo", NUMSAN_PYTHON=str(own_python)))


def test_own_python_without_torch(root_machine, own_python):
    (root_machine.folder / "no_torch").touch()
    done = root_machine.run("setup", NUMSAN_PYTHON=str(own_python))
    assert done.returncode == 1
    assert done.stderr == (f"[setup] error: NUMSAN_PYTHON={own_python} cannot import torch: install it there, or unset "
                           "NUMSAN_PYTHON to get .venv\n")


def test_own_python_that_is_not_there(root_machine):
    done = root_machine.run("setup", NUMSAN_PYTHON="/no/such/python")
    assert done.returncode == 1
    assert done.stderr == "[setup] error: NUMSAN_PYTHON=/no/such/python: there is no such program\n"
