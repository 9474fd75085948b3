"""What makes a run on a device slow: the host that waits for it, or hands it one small tensor after another."""
import json

import pytest

import run_numsan
from explain_pages import HEALTHY, SICK, page_of, program_of

pytestmark = pytest.mark.xdist_group("device")  # one worker has the processes of which they are forks


def on_test_device(code, heading):
    """The program of the page, for the test device."""
    return "torch.manual_seed(0)\n" + program_of(page_of(code), heading).replace('"cuda"', "GPU")


def performance(tmp_path):
    report = json.loads((tmp_path / "report.json").read_text())
    run_numsan.validate(report)
    assert report["verdict"] == "clean" and report["findings"] == [], report["findings"]
    return report["performance"]


@pytest.mark.parametrize("code, count, title", [
    ("NP101", 1, "the host waits for the device in each step"),
    ("NP114", 40, "many small tensors are copied to the device one by one")])
def test_is_a_finding(code, count, title, watched_process, tmp_path):
    done = watched_process(on_test_device(code, SICK), delay_us=500, options={"perf": 1})
    found = performance(tmp_path)["findings"]
    assert [one["code"] for one in found] == [code], found
    line = run_numsan.marked_line(tmp_path / "program.py", "# slow here")
    assert (found[0]["location"]["line"], found[0]["count"]) == (line, count), found
    assert f"info[{code}]: {title}\n" in done.stderr, done.stderr


@pytest.mark.parametrize("code", ["NP101", "NP114"])
def test_twin_has_none(code, watched_process, tmp_path):
    done = watched_process(on_test_device(code, HEALTHY), delay_us=500, options={"perf": 1})
    measured = performance(tmp_path)
    assert (measured["findings"], measured["steps"], done.stderr) == ([], 10, ""), measured
    assert measured["not_measured"] == [
        "what ops take on a device: of them only the host's waits and small copies are seen",
        "time between steps: with a device it may be spent waiting for it, which is no op"]
