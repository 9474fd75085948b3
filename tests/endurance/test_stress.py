"""Random op programs on four threads (stress.py): one round of each kind, and minutes of them in nightly runs."""
import subprocess
import sys
import time

import pytest

import run_numsan
import stress
from nightly import in_ci

PROGRAMS = 4  # on each thread
MINUTES = 10


CHILDREN = """
import random, sys
sys.path.insert(0, sys.argv[1])
import torch
import random_training

def with_checkpoints(*drawn, model_of=random_training.model_of):
    made = model_of(*drawn)
    made.checkpoints = random.choice(("new", "old"))
    return made


ended = []
torch.clear_autocast_cache = lambda: ended.append(1)
random_training.model_of = with_checkpoints
for forks in (None, 0):
    for seed in range(4):
        random_training.train(random.Random(seed), torch.Generator().manual_seed(seed), False, forks)
    print("yes" if ended else "no")
"""


def test_forked_children_keep_off_the_lock_of_autocast():
    """Another thread may hold it at the fork. Other trainings do enter autocast."""
    command = [run_numsan.PYTHON, "-c", CHILDREN, str(stress.PROGRAM.parent)]
    done = subprocess.run(command, capture_output=True, text=True, env=run_numsan.plain_environment(), timeout=300)
    assert done.stdout.split() == ["no", "yes"], done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize("kind", in_ci(stress.KINDS, "healthy"))
def test_one_round(kind, warm, tmp_path):
    result = stress.one_round(1, kind, "", PROGRAMS, tmp_path)
    print(result.line())
    assert not result.wrong, "\n".join([result.line(), *(path.read_text()[-3000:] for path in
                                                         sorted(tmp_path.rglob("stderr")))])


@pytest.mark.parametrize("bare, watched, more", [((1, "a forked child ended with -6"), 0, 1), ((1, "else"), 0, 0),
                                                 ((1, "a forked child ended with -6"), 1, 0), ((0, ""), 0, 0)])
def test_a_round_is_run_again_where_torch_alone_hung(bare, watched, more, tmp_path, monkeypatch):
    rounds, kept = [], tmp_path / "retries"
    monkeypatch.setenv("NUMSAN_TEST_RETRIES", str(kept))

    def run_round(seed, kind, options, programs, folder, limit):
        rounds.append(folder)
        result = stress.Round(seed, kind, options, wrong=["first"] if len(rounds) == 1 else ["second"])
        return result, stress.Ended(bare[0], "", bare[1], 0), stress.Ended(watched, "", "", 0)

    monkeypatch.setattr(stress, "run_round", run_round)
    assert stress.one_round(1, "healthy", "", 4, tmp_path).wrong == ["second" if more else "first"]
    assert len(rounds) == len(set(rounds)) == 1 + more and kept.exists() == bool(more)


@pytest.mark.nightly
def test_many_rounds(warm, tmp_path):
    """Other ones every time; what it prints says which."""
    command = [sys.executable, stress.__file__, "--minutes", MINUTES, "--seed", int(time.time())]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=MINUTES * 60 + 2000,
                          env={**run_numsan.plain_environment(), "NUMSAN_BUILD": str(run_numsan.BUILD),
                               "NUMSAN_PYTHON": run_numsan.PYTHON, "TMPDIR": str(tmp_path)})
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def test_a_difference_is_seen():
    """Of output and of status; a finding of a healthy run; an error where nothing was to go wrong."""
    good = stress.Ended(0, "same\n", "", 1)
    report = {"coverage": {"ops": 1}, "findings": []}
    finding = {"severity": "error", "location": {"file": "elsewhere.py", "line": 1}}
    cases = [(stress.Ended(0, "other\n", "", 1), [report], "stdout differs, first in line 1"),
             (stress.Ended(-11, "same\n", "", 1), [report], "with numsan it ends with -11"),
             (good, [], "numsan was not looking"), (good, [None], "numsan was not looking"),
             (good, [{**report, "findings": [finding]}], "1 findings, and said: ''"),
             (stress.Ended(0, "same\n", "numsan: off: why\n", 1), [report], "numsan turned itself off")]
    for watched, reports, wrong in cases:
        result = stress.Round(1, "healthy", "")
        stress.judge(result, good, watched, reports)
        assert wrong in result.wrong, (wrong, result.wrong)
    result = stress.Round(1, "births", "")
    stress.judge(result, good, good, [{**report, "findings": [finding]}])
    assert result.wrong == ["an error at elsewhere.py:1"]
    result = stress.Round(1, "healthy", "")
    stress.judge(result, good, good, [report])
    assert result.wrong == []
