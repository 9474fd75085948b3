"""What the adapter keeps by thread and by operator: no growth with threads that come and go, no lock over a fork."""
import pathlib

import run_numsan

HERE = pathlib.Path(__file__).resolve().parent
GROWTH = 4 << 20  # bytes over 2000 threads; what one thread has in the boxed hook alone would be 22 MB


def check_growth(tmp_path, env=None):
    done = run_numsan.run(HERE / "many_threads.py", env=env, cwd=tmp_path)
    assert done.returncode == 0 and int(done.stdout) < GROWTH, done.describe()


def test_buffers_of_ended_threads_are_used_again(warm, tmp_path):
    check_growth(tmp_path)


def test_buffers_of_ended_threads_are_used_again_by_record_functions(no_key, tmp_path):
    check_growth(tmp_path, no_key)


def test_child_may_meet_new_operators_while_another_thread_did(warm, tmp_path):
    for run in (run_numsan.run_plain, run_numsan.run):
        done = run(HERE / "fork_new_ops.py", cwd=tmp_path)
        assert done.stdout == "late 0\n", done.describe()
