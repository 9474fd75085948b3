"""Real jobs over gloo: a merge names the rank that made the bad value, and its line. Without the value nothing is
said."""
import json
import pathlib
import subprocess

import pytest

import run_numsan
from free_port import free_port

JOBS = pathlib.Path(__file__).resolve().parent / "jobs.py"
FORKED_RANKS = JOBS.parent / "forked_ranks.py"
SOURCE = JOBS.read_text().splitlines()
pytestmark = pytest.mark.usefixtures("warm")


class Job:
    """One start of a job of `size` ranks in a folder; its reports are in `reports`."""

    def __init__(self, folder):
        self.reports, self.store = folder / "reports", folder / "store"
        self.reports.mkdir()
        self.store.mkdir()

    def merge(self, *arguments):
        done = subprocess.run([run_numsan.COMMAND, "merge", self.reports, *arguments], capture_output=True, text=True,
                              timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def story(self):
        run, = json.loads(self.merge("--format", "json"))["runs"]
        return run


class Run(Job):
    """A job whose ranks are processes of their own, started with numsan as a launcher does."""

    def __init__(self, folder, name, size, *words, **options):
        super().__init__(folder)
        options = {"report": self.reports / "rank-%r.json", **options}
        processes = []
        for rank in range(size):
            argv, environment = run_numsan.attached(
                [run_numsan.PYTHON, JOBS, name, *words], options=options,
                env={"RANK": str(rank), "WORLD_SIZE": str(size), "STORE": str(self.store),
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"})
            processes.append(subprocess.Popen(argv, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                              stderr=subprocess.PIPE, text=True))
        self.said = [process.communicate(timeout=300)[1] for process in processes]
        self.status = [process.returncode for process in processes]


class Forks(Job):
    """A job whose ranks are forks of a watched process. They have their numbers from their process group."""

    def __init__(self, folder, name, size):
        super().__init__(folder)
        ended, reports = run_numsan.watched_forks_of().run(FORKED_RANKS, [size, name], folder,
                                                           late={"STORE": "tcp", "MASTER_ADDR": "127.0.0.1",
                                                                 "MASTER_PORT": str(free_port())})
        assert ended.status == 0, ended
        statuses = json.loads(ended.stdout)
        self.said, self.status = ended.stderr, list(statuses.values())
        for number, process in enumerate(statuses):
            assert reports[int(process)]["run"]["launcher"] == "process group", ended
            (self.reports / f"rank-{number}.json").write_text(json.dumps(reports[int(process)]))


def check(run, first, size):
    """Rank `first` was first, at the line of the bug, and all others only received it."""
    assert run.status == [0] * size, run.said
    story = run.story()
    shown = run.merge()
    assert story["first"]["rank"] == first, shown
    finding = story["first"]["finding"]
    assert SOURCE[finding["location"]["line"] - 1].endswith("# BUG"), shown
    assert finding["sent"][0]["to"] is not None
    assert [one["from"] for one in story["received"]] == [first], shown
    assert story["ranks"]["only_received"] == [rank for rank in range(size) if rank != first], shown
    assert len(story["findings"]) == 1, shown
    assert f"rank {first} of {size} was first\n" in shown
    if isinstance(run, Forks):  # rank 0 said so, too, and no other rank
        assert run.said.count(f"numsan: rank {first} of {size} was first: error[NS103]: ") == 1, run.said
        assert run.said.count(" was first: ") == 1, run.said
    return story


@pytest.mark.parametrize("size", [4, pytest.param(8, marks=pytest.mark.nightly)])
def test_data_parallel(size, tmp_path):
    story = check(Run(tmp_path, "data_parallel", size), size - 1, size)
    sent = story["first"]["finding"]["sent"][0]
    assert (sent["op"], sent["description"], sent["to"]) == ("c10d::allreduce_", "default_pg", f"0-{size - 2}")
    assert (story["launcher"], story["world_size"], story["job"]) == ("environment", size, "127.0.0.1 29512")


def test_sharded(tmp_path):
    story = check(Forks(tmp_path, "sharded", 2), 1, 2)
    assert story["received"][0]["first"]["op"] == "c10d::_reduce_scatter_base_"


def test_pipeline(tmp_path):
    story = check(Forks(tmp_path, "pipeline", 4), 1, 4)
    sent = story["first"]["finding"]["sent"][0]
    assert (sent["op"], sent["to"], sent["number"]) == ("c10d::send", "2", 3)
    assert story["received"][0]["first"]["op"] == "c10d::recv_"


def test_all_to_all(tmp_path):
    story = check(Forks(tmp_path, "experts", 4), 2, 4)
    assert story["first"]["finding"]["sent"][0]["to"] == "0-1, 3"


def test_tensor_parallel(tmp_path):
    story = check(Forks(tmp_path, "tensor_parallel", 4), 3, 4)
    sent = story["first"]["finding"]["sent"][0]
    assert (sent["description"], sent["to"]) == ("mesh_tp", "2")
    assert story["received"][0]["first"]["description"] == "mesh_tp"


def test_broadcast(tmp_path):
    story = check(Forks(tmp_path, "broadcasts", 3), 2, 3)
    sent = story["first"]["finding"]["sent"][0]
    assert (sent["op"], sent["to"], sent["number"]) == ("c10d::broadcast_", "0-1", 3)
    assert story["received"][0]["first"]["from"] == "2"


def test_without_the_bad_value_nothing_is_said(tmp_path):
    run = Run(tmp_path, "all", 4, "healthy")
    assert (run.status, run.said) == ([0] * 4, [""] * 4)
    assert run.merge() == "numsan: no finding: ranks 0-3; reports of 4 of 4 ranks\n"


def test_a_rank_that_was_killed_is_named(tmp_path):
    run = Run(tmp_path, "killed", 4)
    assert run.status[1] == -9 and all(status != 0 for status in run.status), run.said
    story = run.story()
    assert story["ranks"]["not_ended"] == [1] and story["ranks"]["missing"] == []
    text = run.merge()
    assert "numsan: rank 1 had not ended when its last report was written: it was killed, or it still runs\n" in text
    assert "numsan: ranks 0, 2-3 ended with status 1\n" in text
    for path in run.reports.iterdir():
        json.loads(path.read_text())  # whole


@pytest.mark.nightly
def test_quiet_ranks_write_nothing_where_that_is_asked(tmp_path):
    run = Run(tmp_path, "pipeline", 2, "healthy", report_when="finding")
    assert (run.status, run.said) == ([0] * 2, [""] * 2)
    assert list(run.reports.iterdir()) == []
