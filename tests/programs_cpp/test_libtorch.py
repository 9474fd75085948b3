"""A LibTorch program in C++: found through both ways of attaching, with the C++ line from its debug information."""
import pathlib
import subprocess

import pytest

import run_numsan
from compiled_once import compiled_once

pytestmark = pytest.mark.xdist_group("libtorch")  # others would wait for the program to be compiled
SOURCE = pathlib.Path(__file__).resolve().parent / "train.cpp"


def torch_flags():
    """What a program needs to be compiled and linked against the torch that numsan is tested with."""
    text = ("import torch, pathlib; from torch.utils.cpp_extension import include_paths\n"
            "print(pathlib.Path(torch.__file__).parent / 'lib'); print(int(torch._C._GLIBCXX_USE_CXX11_ABI))\n"
            "print(*include_paths(), sep='\\n')")
    done = subprocess.run([run_numsan.PYTHON, "-c", text], check=True, capture_output=True, text=True,
                          env=run_numsan.plain_environment())
    library, abi, *includes = done.stdout.splitlines()
    return ["-std=c++17", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *(f"-isystem{path}" for path in includes)], [
        f"-L{library}", f"-Wl,-rpath,{library}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10"]


@pytest.fixture(scope="module")
def program(warm):
    """The compiled program; kept beside the adapter cache, since the torch headers take the better part of a minute."""
    def command(output):
        compile_flags, link_flags = torch_flags()
        return ["g++", *compile_flags, "-g", "-O1", SOURCE, "-o", output, *link_flags]

    return compiled_once(SOURCE, run_numsan.CACHE / "tests" / "train", command)


@pytest.mark.parametrize("launcher", ["preload", "run"])
def test_finding_has_the_native_line(launcher, program, tmp_path):
    plain = run_numsan.run_plain_command([program], cwd=tmp_path)
    assert plain.returncode == 0 and "nan" in plain.stdout, plain.describe()
    done = run_numsan.run_command([program], launcher=launcher, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.describe()
    assert done.report is not None, done.describe()
    run_numsan.validate(done.report)
    assert len(done.findings) == 1, done.describe()
    first = done.findings[0]
    seen = first["op"], first["phase"], first["kind"], first["severity"], first["mechanism"]
    assert seen == ("aten::log", "forward", "nan", "error", "DOM"), done.describe()
    assert (first["step"], done.report["run"]["steps"]) == (3, 6), done.describe()
    place = first["location"]
    assert place is not None, done.describe()
    assert (pathlib.Path(place["file"]).name, place["line"]) == (SOURCE.name, run_numsan.marked_line(SOURCE, "// BUG"))
    assert "negative_log_likelihood" in place["function"], place
    assert done.report["run"]["python"] is None, "no Python in this process"


@pytest.mark.parametrize("launcher", ["preload", "run"])
def test_healthy_run_is_silent(launcher, program, tmp_path):
    done = run_numsan.run_command([program, "healthy"], launcher=launcher, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == "" and done.findings == [], done.describe()
    assert done.report["verdict"] == "clean" and done.report["coverage"]["ops"] > 0, done.describe()
    assert done.report["run"]["steps"] == 6, done.describe()
