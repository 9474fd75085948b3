"""A machine that others use, too: what they could have put in numsan's way is refused, and the program runs on.

Folders and files really belong to another user here; only root can give them away, in some containers not even root."""
import os
import re
import subprocess

import pytest

import run_numsan

STRANGER = 12345
BUG = "import torch\nw = torch.nn.Parameter(torch.ones(2))\n(-w).log().sum().backward()\nprint('done')\n"


def give_away(path):
    """Gives a file, folder or link to another user."""
    try:
        os.lchown(path, STRANGER, STRANGER)
    except OSError as error:
        pytest.skip(f"nothing can be given to another user here: {error.strerror}")


@pytest.fixture
def buggy(tmp_path):
    program = tmp_path / "buggy.py"
    program.write_text(BUG)
    return program


def numsan_lines(text):
    return [line for line in text.splitlines() if line.startswith("numsan: ")]


def run_off(program, cache, folder):
    """The one line that a run says whose cache is refused; the program itself ran as ever."""
    done = run_numsan.run(program, cwd=folder, env={"NUMSAN_CACHE": str(cache)}, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.describe()
    assert done.findings == [] and len(done.stderr.splitlines()) == 1, done.describe()
    return done.stderr.rstrip("\n")


def doctor_says(cache):
    """Doctor's line about the cache, and its exit status."""
    done = subprocess.run([run_numsan.COMMAND, "doctor", "--", run_numsan.PYTHON], capture_output=True, text=True,
                          env={**os.environ, "NUMSAN_CACHE": str(cache)}, timeout=420)
    return re.findall(r"^(ok|limited|broken) +cache: (.*)$", done.stdout, re.M), done.returncode


@pytest.fixture
def copied_cache(warm, tmp_path):
    """A cache with the real adapter in it, which would be loaded at once."""
    adapter = max(run_numsan.CACHE.glob("libnumsan_torch-*.so"), key=lambda path: path.stat().st_mtime)
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    copy = cache / adapter.name
    copy.write_bytes(adapter.read_bytes())
    copy.chmod(0o700)
    return cache


def test_copied_cache_is_used(copied_cache, buggy, tmp_path):
    """What the others rest on: without their change the adapter is loaded."""
    done = run_numsan.run(buggy, cwd=tmp_path, env={"NUMSAN_CACHE": str(copied_cache), "CXX": "/nonexistent",
                                                    "PATH": "/nonexistent"})
    assert len(done.findings) == 1, done.describe()


def test_cache_of_another_user(copied_cache, buggy, tmp_path):
    give_away(copied_cache)
    line = (f"{copied_cache} belongs to user {STRANGER}, not to root: no code is loaded from there; "
            "set NUMSAN_CACHE to a folder that only you can write")
    assert run_off(buggy, copied_cache, tmp_path) == f"numsan: off: {line}"
    assert doctor_says(copied_cache) == ([("broken", line)], 2)


def test_adapter_of_another_user(copied_cache, buggy, tmp_path):
    adapter, = copied_cache.iterdir()
    give_away(adapter)
    assert run_off(buggy, copied_cache, tmp_path) == (
        f"numsan: off: {adapter} belongs to user {STRANGER}, not to root: no code is loaded from there; remove it")


def test_link_of_another_user_on_the_way(copied_cache, buggy, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(copied_cache)
    give_away(link)
    assert run_off(buggy, link, tmp_path) == (
        f"numsan: off: {link} is a link of user {STRANGER}: no code is loaded from there; "
        "set NUMSAN_CACHE to a folder that only you can write")


@pytest.mark.parametrize("mode, who", [
    pytest.param(0o770, "its group", marks=pytest.mark.nightly), (0o707, "everybody")])
def test_cache_that_others_can_write(mode, who, copied_cache, buggy, tmp_path):
    copied_cache.chmod(mode)
    line = (f"{copied_cache} can be written by {who} (mode 0{mode:o}): no code is loaded from there; "
            f"chmod go-w {copied_cache}, or set NUMSAN_CACHE to a folder that only you can write")
    assert run_off(buggy, copied_cache, tmp_path) == f"numsan: off: {line}"
    assert doctor_says(copied_cache) == ([("broken", line)], 2)


def test_report_is_not_written_through_the_link_of_another_user(warm, buggy, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    target, link = tmp_path / "target", shared / "report.json"
    target.write_text("mine")
    link.symlink_to(target)
    give_away(link)
    done = run_numsan.run(buggy, cwd=tmp_path, options={"report": link})
    assert (done.returncode, done.stdout) == (0, "done\n"), done.describe()
    assert target.read_text() == "mine", done.describe()
    assert [line for line in numsan_lines(done.stderr) if "not written" in line] == [
        f"numsan: the report was not written: cannot write {link}: it is a link of user {STRANGER}, which is not "
        "followed"], done.describe()
