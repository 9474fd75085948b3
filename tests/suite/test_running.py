"""Bare runs in forks are what processes of their own leave, less their times."""
import running


def test_bare_runs_in_forks(tmp_path):
    program = running.SUITE / "programs" / "p01_click_logistic.py"
    own, forked = (running.Runner(tmp_path, fork=fork).bare(program) for fork in (False, True))
    assert own.pop("seconds") > 0 and forked.pop("seconds") is None  # and neither took what the other had kept
    assert forked == own and own["exit_status"] == 0


def test_who_needs_more_than_torch_is_not_forked(tmp_path):
    program = tmp_path / "rank.py"
    program.write_text("# label: needs=gloo fragile=\nimport os\nprint(os.getppid())\n")
    runner = running.Runner(tmp_path, fork=True)
    done = runner.bare(program)
    assert done["seconds"] is not None and not hasattr(runner.servers, "mine")
