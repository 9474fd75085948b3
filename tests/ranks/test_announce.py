"""While a job runs, rank 0 says which rank was first, by what that has left in the job's TCPStore."""
import json
import os
import pathlib
import subprocess

import pytest

import run_numsan
from free_port import free_port

JOBS = pathlib.Path(__file__).resolve().parent / "jobs.py"
GONE_STORE = JOBS.parent / "gone_store.py"
SOURCE = JOBS.read_text().splitlines()
pytestmark = pytest.mark.usefixtures("warm")


def run(folder, size, *command, port=None, env=None, **options):
    """What each rank of a job says."""
    options = {"report": folder / "rank-%r.json", **options}
    port, processes = port or free_port(), []
    for rank in range(size):
        argv, environment = run_numsan.attached(
            [run_numsan.PYTHON, *command], options=options,
            env={"RANK": str(rank), "WORLD_SIZE": str(size), "STORE": "tcp", "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": str(port), **(env or {})})
        processes.append(subprocess.Popen(argv, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True))
    texts = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * size, texts
    return texts


def lines_on_ranks(text):
    return [line for line in text.splitlines() if line.startswith("numsan: rank")]


def marked_line():
    return next(number for number, line in enumerate(SOURCE, 1) if line.endswith("+ y.square().mean()  # BUG"))


def test_rank_0_names_the_first_and_the_others_say_nothing(tmp_path):
    texts = run(tmp_path, 4, JOBS, "data_parallel")
    assert lines_on_ranks(texts[0]) == [
        "numsan: rank 3 of 4 was first: error[NS103]: NaN: `aten::div` divided by zero in 1 of 1 "
        f"value, at {JOBS}:{marked_line()} in train, step 2; its report is {tmp_path}/rank-3.json"], texts[0]
    assert [lines_on_ranks(text) for text in texts[1:]] == [[]] * 3, texts
    document = json.loads((tmp_path / "rank-0.job").read_text())
    assert (document["schema"], document["world_size"]) == ("numsan.job/1", 4)
    error, = document["first_errors"]
    assert (error["rank"], error["step"], error["location"]["line"]) == (3, 2, marked_line())
    for reports in ([tmp_path], sorted(tmp_path.glob("*.json"))):
        merged = subprocess.run([run_numsan.COMMAND, "merge", *reports], capture_output=True, text=True, timeout=60)
        assert (merged.returncode, merged.stderr) == (0, "") and "rank 3 of 4 was first\n" in merged.stdout, merged


def test_healthy_jobs_say_nothing_and_connect_nowhere(tmp_path):
    left_over = tmp_path / "rank-0.job"
    left_over.write_text('{\n "schema": "numsan.job/1",\n "first_errors": []\n}\n')
    os.utime(left_over, (0, 0))
    texts = run(tmp_path, 2, JOBS, "counted")
    # Of the store's own keys there are as many without numsan; it would add one for each text, and one for their count.
    bare = run(tmp_path, 2, JOBS, "counted", tier="off")
    assert texts == bare and "keys in the store" in texts[0], (texts, bare)
    assert not left_over.exists()


@pytest.mark.nightly
def test_it_can_be_turned_off(tmp_path):
    texts = run(tmp_path, 2, JOBS, "data_parallel", announce=0)
    assert lines_on_ranks(texts[0]) == [], texts[0]
    assert "error[" in texts[0] and not (tmp_path / "rank-0.job").exists()


@pytest.mark.nightly
def test_ranks_of_torchrun_whose_store_is_their_launchers(tmp_path):
    done = run_numsan.run_command(
        [run_numsan.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", JOBS,
         "data_parallel"], env={"STORE": "tcp"}, cwd=tmp_path)
    assert done.stderr.count("numsan: rank 1 of 2 was first: error[NS103]") == 1, done.stderr


@pytest.mark.nightly
def test_a_store_that_has_gone_is_not_heard_of(tmp_path):
    port = free_port()
    keeper = subprocess.Popen(
        [run_numsan.PYTHON, "-c", f"import torch.distributed as d; s = d.TCPStore('127.0.0.1', {port}, is_master=True, "
         "wait_for_workers=False); print('up', flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=run_numsan.plain_environment())
    assert keeper.stdout.readline() == "up\n"
    texts = run(tmp_path, 2, GONE_STORE, port=port, env={"STORE_PROCESS": str(keeper.pid)})
    assert keeper.wait() == -9
    assert all("error[" in text and "frame #" not in text and not lines_on_ranks(text) for text in texts), texts
