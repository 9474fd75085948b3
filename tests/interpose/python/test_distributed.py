"""The rank of a program that makes its process group itself, in its reports and their names."""
import pathlib

import pytest

import run_numsan

RANKS = pathlib.Path(__file__).with_name("ranks.py")


@pytest.mark.parametrize("bad, environment", [
    pytest.param(False, {}, marks=pytest.mark.nightly), (True, {}),
    pytest.param(True, {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "1"},
                 marks=pytest.mark.nightly),
], ids=["clean", "bad", "bad, below srun of one task"])
def test_rank_is_that_of_the_process_group(bad, environment, warm, tmp_path):
    arguments = [tmp_path / "meeting", *(["bad"] if bad else [])]
    done = run_numsan.run(RANKS, args=[*map(str, arguments)], options={"report": tmp_path / "report-%r-%p.json"},
                          env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    reports = {path.name: run_numsan.read_report(path) for path in tmp_path.glob("report-*.json")}
    ranks = {}
    for name, report in reports.items():
        run_numsan.validate(report)
        run = report["run"]
        if run["rank"] is None:  # the process that started them is none of the group
            assert run["world_size"] is None and name == f"report-0-{run['pid']}.json", (name, run)
            continue
        assert run["world_size"] == 2 and name == f"report-{run['rank']}-{run['pid']}.json", (name, run)
        ranks[run["rank"]] = report
    assert sorted(ranks) == [0, 1], (sorted(reports), done.describe())
    assert [len(ranks[rank]["findings"]) for rank in (0, 1)] == [0, int(bad)], done.describe()
    assert all(finding["rank"] == 1 for finding in ranks[1]["findings"])


@pytest.mark.nightly
def test_environment_goes_before_the_process_group(warm, tmp_path):
    """A launcher's numbers name the files from the start."""
    done = run_numsan.run(RANKS, args=[str(tmp_path / "meeting")], options={"report": tmp_path / "report-%r-%p.json"},
                          env={"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8"}, cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    for path in tmp_path.glob("report-*.json"):
        run = run_numsan.read_report(path)["run"]
        assert (run["rank"], run["world_size"]) == (5, 8) and path.name == f"report-5-{run['pid']}.json", run
