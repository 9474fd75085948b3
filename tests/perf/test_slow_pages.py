"""What makes a run slow: the programs on the pages of `numsan explain` have it, their twins do not."""
import re
import subprocess

import pytest

import run_numsan
from explain_pages import HEALTHY, SICK, page_of, program_of

pytestmark = pytest.mark.xdist_group("perf")  # one worker has the process of which they are forks
MARK = "# slow here"
CODES = re.findall(r'^NUMSAN_SLOW_CAUSE\("(NP\d+)", \w+, "([\w-]+)"',
                   (run_numsan.REPO / "host" / "finding" / "slow" / "slow_causes.def").read_text(), re.MULTILINE)
ON_DEVICE = ["NP101", "NP114"]  # tests/device/test_device_slow.py
ON_HOST = [code for code, _ in CODES if code not in ON_DEVICE]
OPTIONS = {"perf": 1, "fail_on": "warning"}


def slow(result):
    """[(code, file, line)] of a report, costliest first."""
    assert result.report is not None, result.describe()
    run_numsan.validate(result.report)
    places = [(one["code"], one["location"] or {}) for one in result.report["performance"]["findings"]]
    return [(code, place.get("file", ""), place.get("line")) for code, place in places]


@pytest.mark.parametrize("code", ON_HOST)
def test_program_has_it(code, warm, tmp_path):
    program = tmp_path / "slow.py"
    program.write_text(program_of(page_of(code), SICK))
    done = run_numsan.run_watched_fork(program, options=OPTIONS, cwd=tmp_path)
    assert done.returncode == 0 and done.findings == [], done.describe()
    line = run_numsan.marked_line(program, MARK)
    assert (code, str(program), line) in slow(done), done.report["performance"]
    assert done.report["verdict"] == "clean", done.describe()
    found = next(one for one in done.report["performance"]["findings"] if one["code"] == code)
    assert found["location"]["code"].endswith(MARK) and 0.02 <= found["share"] <= 1, found
    heading = "numsan: what makes the run slow, by 10 steps that were looked at:\ninfo["
    assert done.stderr.startswith(heading), done.stderr
    assert f"info[{code}]: {found['title']}\n" in done.stderr and f"= measured: {found['measured']}\n" in done.stderr
    assert all(f"help: {line}\n" in done.stderr for line in found["help"]), done.stderr


@pytest.mark.parametrize("code", ON_HOST)
def test_twin_does_not(code, warm, tmp_path):
    program = tmp_path / "healthy.py"
    program.write_text(program_of(page_of(code), HEALTHY))
    done = run_numsan.run_watched_fork(program, options=OPTIONS, cwd=tmp_path, clean=True)
    assert (done.returncode, done.stdout) == (66, ""), done.describe()  # of the value that shows numsan is looking
    assert slow(done) == [] and done.stderr == "", (done.report["performance"], done.stderr)
    assert done.report["performance"]["steps"] == 10, done.report["performance"]


@pytest.mark.parametrize("code, slug", CODES)
def test_page_has_two_names(code, slug):
    assert page_of(code) == page_of(slug) == page_of(code.lower())


LOOKS_SLOW = """
import time
import numpy
import torch

torch.manual_seed(0)
shared = numpy.zeros((512, 512), dtype="float32")
view = torch.from_numpy(shared)
start = torch.zeros(512, 512)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Dropout(0.1), torch.nn.Linear(512, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    shared[:] = step / 100         # no op is seen to write it
    scaled = view * 2
    state = start.clone()          # written to below
    state += scaled
    kept = torch.rand(512, 512) < 0.9
    if step % 10 == 0:
        time.sleep(0.1)            # a checkpoint
    loss = model(state * kept).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_only_looks_slow_is_no_finding(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LOOKS_SLOW)
    done = run_numsan.run_watched_fork(program, options=OPTIONS, cwd=tmp_path, clean=True)
    assert slow(done) == [] and done.stderr == "", (done.report["performance"], done.stderr)


BY_HAND = """
import torch
w = torch.nn.Parameter(torch.randn(8, 1024) / 8)
for step in range(12):
    x = torch.randn(1024, 8)
    future = torch.ones(1024, 1024).tril() == 0  # slow here
    loss = (x @ w).masked_fill(future, 0).square().mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad = None
"""


def test_steps_by_hand_are_steps(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(BY_HAND)
    done = run_numsan.run_watched_fork(program, options=OPTIONS, cwd=tmp_path)
    assert ("NP105", str(program), run_numsan.marked_line(program, MARK)) in slow(done), done.describe()


@pytest.fixture(scope="module")
def reported(warm, tmp_path_factory):
    """A process of its own, by the launcher's flag."""
    folder = tmp_path_factory.mktemp("reported")
    program = folder / "program.py"
    program.write_text(program_of(page_of("NP105"), SICK))
    return run_numsan.run(program, launcher="run", options={"perf": 1}, cwd=folder)


def test_launcher_has_the_flag(reported):
    program = reported.folder / "program.py"
    assert reported.returncode == 0, reported.describe()
    assert ("NP105", str(program), run_numsan.marked_line(program, MARK)) in slow(reported), reported.describe()
    assert reported.report["run"]["options"] == {"perf": "1"} | {
        key: value for key, value in reported.report["run"]["options"].items() if key == "report"}


def test_report_is_shown_again(reported):
    done = subprocess.run([run_numsan.COMMAND, "report", reported.report_path], capture_output=True, text=True)
    assert done.returncode == 0 and reported.stderr.rstrip("\n") in done.stdout, done.stdout


def test_without_the_option_there_is_no_performance(warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(program_of(page_of("NP105"), SICK))
    done = run_numsan.run_watched_fork(program, cwd=tmp_path, clean=True)
    assert "performance" not in done.report and done.stderr == "", done.describe()
