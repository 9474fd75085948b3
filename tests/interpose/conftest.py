"""The two ways in which the adapter sees operators, as environments for run_numsan."""
import pathlib
import subprocess

import pytest

import run_numsan
from compiled_once import compiled_once

HERE = pathlib.Path(__file__).resolve().parent / "torch"


@pytest.fixture(scope="session")
def key_taker(warm):
    """The library that takes numsan's dispatch key; kept beside the adapter cache: torch's headers take a while."""
    source = HERE / "take_key.cpp"

    def command(output):
        text = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent)"
        root = subprocess.run([run_numsan.PYTHON, "-c", text], check=True, capture_output=True, text=True,
                              env=run_numsan.plain_environment()).stdout.strip()
        return ["g++", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=1", "-DNDEBUG", "-fPIC", "-shared",
                f"-isystem{root}/include", source, "-o", output, f"-L{root}/lib", f"-Wl,-rpath,{root}/lib",
                "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10"]

    return compiled_once(source, run_numsan.CACHE / "tests" / "libtake_key.so", command)


@pytest.fixture
def no_key(key_taker):
    """Environment of a Python program in which another library holds the key."""
    return {"TAKE_KEY": str(key_taker), "PYTHONPATH": str(HERE)}
