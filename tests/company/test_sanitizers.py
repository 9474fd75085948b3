"""Programs that were built with the address sanitizer, or that run under its library."""
import shutil
import subprocess

import pytest

import beside
import run_numsan

SOURCE = beside.PROGRAMS / "with_sanitizer.c"
COMPILERS = {"gcc": ["gcc"], "clang": ["clang"], "clang, shared": ["clang", "-shared-libasan"]}


@pytest.fixture(scope="module")
def torch_library():
    text = "import importlib.util, pathlib; print(pathlib.Path(importlib.util.find_spec('torch').origin).parent)"
    root = subprocess.run([run_numsan.PYTHON, "-c", text], check=True, capture_output=True, text=True).stdout.strip()
    return f"{root}/lib/libtorch_cpu.so"


@pytest.fixture(params=COMPILERS)
def program(request, tmp_path):
    """Built with the address sanitizer; its runtime is found by a run path, where it is a library."""
    compiler, *flags = COMPILERS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if flags:
        runtime = subprocess.run([compiler, "-print-runtime-dir"], capture_output=True, text=True).stdout.strip()
        flags.append(f"-Wl,-rpath,{runtime}")
    built = tmp_path / "program"
    done = subprocess.run([compiler, "-g", "-fsanitize=address", *flags, SOURCE, "-o", built, "-ldl"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{compiler} has no address sanitizer here: {done.stderr.strip().splitlines()[-1]}")
    return built


def run_both(command, folder):
    plain = run_numsan.run_plain_command(command, cwd=folder, timeout=beside.TIMEOUT)
    return plain, run_numsan.run_command(command, cwd=folder, timeout=beside.TIMEOUT)


def test_program_is_not_refused_and_has_no_leak(program, torch_library, warm, tmp_path):
    """The sanitizer ends a program before which another library is loaded, unless told otherwise; and it looks for
    leaks at the end."""
    plain, watched = run_both([program, torch_library, "2"], tmp_path)
    assert (plain.returncode, plain.stderr) == (0, ""), plain.describe()
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, plain.stdout, ""), watched.describe()
    assert watched.report["verdict"] == "clean" and watched.report["coverage"]["ops"] > 0, watched.describe()


def test_what_the_sanitizer_finds_it_still_finds(program, torch_library, warm, tmp_path):
    plain, watched = run_both([program, torch_library, "2", "overrun"], tmp_path)
    assert plain.returncode != 0 and "heap-buffer-overflow" in plain.stderr, plain.describe()
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout), watched.describe()
    assert "heap-buffer-overflow" in watched.stderr and "numsan: off" not in watched.stderr, watched.describe()


def test_what_numsan_finds_it_still_finds(program, torch_library, warm, tmp_path):
    watched = run_numsan.run_command([program, torch_library, "-2"], cwd=tmp_path, timeout=beside.TIMEOUT)
    assert (watched.returncode, watched.stdout) == (0, "log nan\n"), watched.describe()
    places = [(finding["location"]["file"], finding["location"]["line"]) for finding in watched.findings]
    assert places == [(str(SOURCE), run_numsan.marked_line(SOURCE, "/* BUG */"))], watched.describe()


def test_options_of_others_count(warm, tmp_path):
    """Those of another library that is preloaded and answers the sanitizer, and those in the environment."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    library, program = tmp_path / "libown.so", tmp_path / "program"
    (tmp_path / "own.c").write_text('const char* __asan_default_options(void) '
                                    '{ return "exitcode=77:verify_asan_link_order=0"; }\n')
    (tmp_path / "main.c").write_text('#include <stdlib.h>\n'
                                     'int main(int c, char** v) { char* p = malloc(1); p[c] = 1; return !v; }\n')
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "own.c", "-o", library], check=True)
    subprocess.run(["gcc", "-O0", "-fsanitize=address", tmp_path / "main.c", "-o", program], check=True)
    other = {"LD_PRELOAD": str(library)}
    plain = run_numsan.run_plain_command([program], cwd=tmp_path, env=other)
    watched = run_numsan.run_command([program], cwd=tmp_path, env=other)
    assert plain.returncode == 77, plain.describe()
    assert watched.returncode == 77 and "heap-buffer-overflow" in watched.stderr, watched.describe()
    strict = run_numsan.run_command([program], cwd=tmp_path, env={"ASAN_OPTIONS": "verify_asan_link_order=1"})
    assert "does not come first" in strict.stderr, strict.describe()
