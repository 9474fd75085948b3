"""numsan history over made-up nights: what it says of each finding, and what it cannot read.

NUMSAN_WRITE_GOLDEN=1 writes the golden files anew.
"""
import json
import os
import subprocess

import made_nights
import made_reports
import pytest
import run_numsan

pytestmark = pytest.mark.usefixtures("build")


def history(*arguments, cwd, status=0):
    done = subprocess.run([run_numsan.COMMAND, "history", *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, cwd=cwd, env=run_numsan.plain_environment())
    assert done.returncode == status, done
    return done


@pytest.fixture
def folder(tmp_path):
    made_nights.write_nights(tmp_path / "nights")
    return tmp_path


@pytest.mark.parametrize("name, suffix", [("text", "txt"), ("json", "json")])
def test_golden(folder, name, suffix):
    done = history("nights", "--format", name, cwd=folder)
    path = made_reports.GOLDEN / "formats" / f"history.{suffix}"
    if os.environ.get("NUMSAN_WRITE_GOLDEN"):
        path.write_text(done.stdout)
    assert (done.stdout, done.stderr) == (path.read_text(), "")


def test_a_regression_shows_before_it_is_an_infinity(folder):
    document = json.loads(history("nights", "--format", "json", cwd=folder).stdout)
    assert document["schema"] == "numsan.history/1" and len(document["nights"]) == 5
    by_code = {one["code"] + str(one["location"]["line"]): one for one in document["findings"]}
    overflow, closer = by_code["NS102107"], by_code["NS104101"]
    assert (overflow["state"], overflow["first_night"]) == ("new", 4)
    assert (closer["state"], closer["last_night"]) == ("gone", 3)
    shares = [one["share_of_largest"] for one in closer["nights"]]
    assert shares == sorted(shares) and shares[0] == pytest.approx(21000 / 65504) and shares[-1] > 0.9
    assert [one["step"] for one in closer["nights"]] == [900, 720, 540, 360]
    moved, = [one for one in document["findings"] if one["nights"][0]["step"] == 50]
    assert [one["night"] for one in moved["nights"]] == [0, 1, 3] and moved["nights"][0]["reports"] == 2
    assert document["nights"][2]["incomplete"] == 1


def test_reports_of_one_folder_are_nights_in_the_order_of_their_time(tmp_path):
    reports = [made_reports.example(started=f"2026-11-{20 - i}T00:00:00Z") for i in range(3)]
    reports[2].update(findings=[], verdict="clean")  # the earliest
    made_reports.write(tmp_path, reports)
    finding, = json.loads(history(tmp_path, "--format", "json", cwd=tmp_path).stdout)["findings"]
    assert [one["night"] for one in finding["nights"]] == [1, 2] and finding["state"] == "present"


def test_what_cannot_be_read(folder):
    assert history("gone", cwd=folder, status=2).stderr == "numsan: gone: cannot be read: No such file or directory\n"
    (folder / "empty").mkdir()
    assert "there is no report (*.json) in this folder" in history("empty", cwd=folder, status=2).stderr
    (folder / "nights" / "notes").mkdir()
    done = history("nights", cwd=folder)
    assert done.stderr == "numsan: skipped nights/notes: there is no report (*.json) in this folder\n"
    broken = folder / "nights" / "2026-11-18" / "numsan-0.json"
    broken.write_text(broken.read_text()[:300])
    done = history("nights", "-o", "out", cwd=folder, status=2)
    assert "2026-11-18/numsan-0.json: byte 30" in done.stderr and not (folder / "out").exists()
    assert "expected text, json or html; did you mean 'html'?" in history(
        "nights", "--format", "htlm", cwd=folder, status=2).stderr
