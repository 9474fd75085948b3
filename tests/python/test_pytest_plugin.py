"""`pytest --numsan`: started again under numsan once, findings with the test that ran, marks, severities, workers."""
import re
import xml.etree.ElementTree as xml

import pytest
import run_numsan

CONFTEST = """
open("loaded", "a").write("conftest\\n")
"""
TESTS = """
import os, subprocess, sys, warnings
import pytest, torch

def bad_gradient(op):
    w = torch.nn.Parameter(torch.zeros(2))
    getattr(w, op)().sum().backward()  # BUG
    return w

@pytest.fixture
def broken():
    float(-torch.ones(2).log().sub(1).sqrt().sum())
    return 1

@pytest.fixture
def bad():
    return bad_gradient("sqrt")

def test_healthy():
    print("said by a healthy test")
    assert os.environ["LD_PRELOAD"].count("libnumsan.so") == 1
    torch.nn.Parameter(torch.ones(2)).sqrt().sum().backward()

def test_gradient():
    bad_gradient("sqrt")

def test_same_again():
    bad_gradient("sqrt")

def test_read():
    float((-torch.ones(2)).log().sum())

@pytest.mark.numsan(allow=["file:elsewhere.py", "op:aten::sqrt file:test_it.py"])
def test_allowed():
    bad_gradient("sqrt")

@pytest.mark.numsan(allow="opp:aten::sqrt")
def test_bad_rule():
    pass

@pytest.mark.xfail(reason="known")
def test_expected():
    bad_gradient("rsqrt")

def test_raises():
    bad_gradient("log2")
    assert False, "of the test's own"

def test_fixture(broken):
    assert broken

def test_bad_fixture(bad):
    pass
"""
OUTSIDE = """
import torch
float((-torch.ones(2)).acos().add(float("inf")).sum())  # where no test runs
w = torch.nn.Parameter(torch.zeros(2)); w.sqrt().sum().backward()
with torch.no_grad(): w -= 0.1 * w.grad

def test_nothing():
    pass
"""


def run(folder, *arguments, options="", **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    command = [run_numsan.PYTHON, "-m", "pytest", "-p", "numsan.pytest_plugin", "-p", "no:cacheprovider", *arguments]
    environment = {"PYTHONPATH": str(run_numsan.REPO / "python"), "NUMSAN_BUILD": str(run_numsan.BUILD),
                   "NUMSAN_CACHE": str(run_numsan.CACHE), "NUMSAN_OPTIONS": options, "PYTEST_ADDOPTS": ""}
    # Variables of the pytest that runs this.
    command = ["env", "-u", "PYTEST_XDIST_WORKER", "-u", "PYTEST_CURRENT_TEST", *command]
    return run_numsan.run_plain_command(command, env=environment, cwd=folder)


def outcomes(done, junit):
    """{test: (outcome, codes of its findings)} as --junit-xml has it."""
    found = {}
    for case in xml.parse(junit).iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        codes = [re.search(r"\[(NS\d+)\]", one.get("value"))[1] for one in case.iter("property")
                 if one.get("name") == "numsan"]
        found[case.get("name")] = (kinds[0] if kinds else "passed", sorted(set(codes)))
    return found


def test_findings_belong_to_tests(warm, tmp_path):
    """`--numsan .` has a tier and a path, which is not the tier."""
    done = run(tmp_path, "-rA", "--junit-xml=junit.xml", "--numsan", ".", conftest=CONFTEST, test_it=TESTS)
    assert done.returncode == 1, done.describe()
    found = outcomes(done, tmp_path / "junit.xml")
    assert found["test_healthy"] == ("passed", []), done.describe()
    assert found["test_gradient"] == ("failure", ["NS102"]), done.describe()
    assert found["test_same_again"] == ("failure", ["NS102"]), "the same line again, in another test"
    assert found["test_read"] == ("passed", ["NS101"]), "a value that was only read is a warning"
    assert found["test_allowed"] == ("passed", []), done.describe()
    assert found["test_bad_rule"] == ("error", []), done.describe()
    assert found["test_expected"][0] == "skipped", done.describe()
    assert found["test_raises"][0] == "failure", done.describe()
    assert found["test_fixture"] == ("passed", ["NS101"]), "a warning of its setup"
    assert found["test_bad_fixture"] == ("error", ["NS102"]), done.describe()
    assert "NumsanWarning: warning[NS101]" in done.stdout, done.describe()
    assert re.search(r"^FAILED test_it.py::test_gradient - Failed: error\[NS102\]", done.stdout, re.M
                     ), done.describe()
    assert "    getattr(w, op)().sum().backward()  # BUG" in done.stdout, "the report's text"
    assert "allow: 'opp:aten::sqrt': expected one of op, file" in done.stdout, done.describe()
    loaded = (tmp_path / "loaded").read_text()
    assert loaded == "conftest\n", f"started again after conftests were loaded\n{done.describe()}"
    assert done.stdout.count("said by a healthy test") == 1 and done.stdout.count("test session starts") == 1
    assert list(tmp_path.glob("numsan-*.json")) == [], "no report of the process"


def test_workers_and_severities(warm, tmp_path):
    done = run(tmp_path, "-n2", "--numsan=full", "--numsan-fail-on=warning", "--junit-xml=junit.xml", "-k",
               "gradient or read or healthy or nothing", test_it=TESTS, test_outside=OUTSIDE)
    assert done.returncode == 1, done.describe()
    found = outcomes(done, tmp_path / "junit.xml")
    assert found == {"test_healthy": ("passed", []), "test_gradient": ("failure", ["NS102"]),
                     "test_read": ("failure", ["NS101"]), "test_nothing": ("passed", [])}, done.describe()
    assert re.search(r"^where no test ran: error\[NS\d+\].* at test_outside.py:", done.stdout, re.M), done.describe()


def test_outside_of_tests_fails_the_session(warm, tmp_path):
    done = run(tmp_path, "-q", "--numsan", test_outside=OUTSIDE)
    assert done.returncode == 1 and "1 passed" in done.stdout, done.describe()
    assert done.stdout.count("where no test ran: ") >= 1, done.describe()


@pytest.mark.parametrize("arguments, said", [
    (["--numsan=fulll"], "--numsan: bad value 'fulll': expected one of auto, sentinel, boundary, full"),
    (["--numsan-fail-on=never"], "invalid choice: 'never'"),
], ids=["tier", "severity"])
def test_bad_arguments(build, tmp_path, arguments, said):
    done = run(tmp_path, *arguments)
    assert done.returncode == 4 and said in done.stderr, done.describe()


def test_without_the_option_nothing_happens(build, tmp_path):
    done = run(tmp_path, "-q", test_it="import os\ndef test_it():\n    assert 'LD_PRELOAD' not in os.environ\n")
    assert done.returncode == 0 and "numsan" not in done.stdout + done.stderr, done.describe()


def test_called_by_a_program(build, tmp_path):
    (tmp_path / "tests.py").write_text("import sys, pytest\nsys.exit(pytest.main(['-p', 'numsan.pytest_plugin', "
                                       "'--numsan']))\n")
    environment = {"PYTHONPATH": str(run_numsan.REPO / "python"), "NUMSAN_BUILD": str(run_numsan.BUILD)}
    done = run_numsan.run_plain_command(["env", "-u", "PYTEST_XDIST_WORKER", run_numsan.PYTHON, "tests.py"],
                                        env=environment, cwd=tmp_path)
    assert done.returncode == 4, done.describe()
    assert "start that program with `numsan run -- python ...`" in done.stderr, done.describe()
