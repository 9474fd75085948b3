"""The two ways in which the adapter sees operators, as environments for run_numsan."""
import pathlib
import subprocess

import pytest

import run_numsan

HERE = pathlib.Path(__file__).resolve().parent / "torch"


@pytest.fixture(scope="session")
def key_taker(warm):
    """The library that takes numsan's dispatch key; kept beside the adapter cache: torch's headers take a while."""
    source, library = HERE / "take_key.cpp", run_numsan.CACHE / "tests" / "libtake_key.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        text = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent)"
        root = subprocess.run([run_numsan.PYTHON, "-c", text], check=True, capture_output=True, text=True,
                              env=run_numsan.plain_environment()).stdout.strip()
        subprocess.run(["g++", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=1", "-DNDEBUG", "-fPIC", "-shared",
                        f"-isystem{root}/include", source, "-o", library, f"-L{root}/lib", f"-Wl,-rpath,{root}/lib",
                        "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10"], check=True, timeout=400)
    return library


@pytest.fixture
def no_key(key_taker):
    """Environment of a Python program in which another library holds the key."""
    return {"TAKE_KEY": str(key_taker), "PYTHONPATH": str(HERE)}
