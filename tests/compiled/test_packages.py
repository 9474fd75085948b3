"""Exported programs, packages of AOTInductor's, and compiled models in inference mode."""
import pathlib
import shutil

import pytest

import run_numsan
from nightly import in_ci

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")
PACKAGES = pathlib.Path(__file__).resolve().parent / "packages.py"


def found_in(how, tmp_path, *args):
    done = run_numsan.run(PACKAGES, args=[how, *args], cwd=tmp_path, timeout=600)
    printed = done.stdout.split("seen")[0].split()
    assert done.returncode == 0 and len(printed) == 4, done.describe()
    assert [number == "nan" for number in printed] == [False, False, True, False], done.describe()
    run_numsan.validate(done.report)
    assert len(done.findings) == 1 and done.findings[0]["location"]["file"] == str(PACKAGES), done.describe()
    return done.findings[0], done


@pytest.mark.parametrize("how", in_ci(["module", "inference", "weights"], "weights"))
def test_the_line_of_the_model_is_named_at_the_end_of_a_program(how, warm, tmp_path):
    found, done = found_in(how, tmp_path)
    assert (found["op"], found["location"]["line"]) == ("aten::log", run_numsan.marked_line(PACKAGES)), done.describe()
    assert found["module"] == "call", done.describe()


@pytest.mark.nightly
def test_a_package_is_named_where_it_is_called(warm, tmp_path):
    plain = run_numsan.run_plain(PACKAGES, args=["package", "net.pt2"], cwd=tmp_path, timeout=600)
    found, done = found_in("package", tmp_path, "net.pt2")
    assert done.stdout == plain.stdout and "seen" in plain.stdout, plain.describe()
    assert found["op"] == "compiled region" and found["category"]["id"] != "N1", done.describe()
    assert found["location"]["line"] == run_numsan.marked_line(PACKAGES, "# CALL"), done.describe()
    said = ("it came out of a package of kernels that AOTInductor wrote: its ops and its weights are not seen, and the "
            "line is where it was called")
    assert said in found["evidence"], done.describe()
    assert "numsan_package" not in str(done.report["findings"]) + done.stderr, done.describe()
