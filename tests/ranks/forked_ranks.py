"""All ranks of a job, as forks of this process, which has torch and numsan: rank N runs `jobs.py NAME` with RANK=N.

    forked_ranks.py SIZE NAME [healthy]

Prints {process: its exit status} of the ranks.
"""
import json
import os
import pathlib
import runpy
import sys

JOBS = pathlib.Path(__file__).resolve().parent / "jobs.py"


def start(rank, size, words):
    """The process of a rank, which ends with its job."""
    process = os.fork()
    if process == 0:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
        sys.argv = [str(JOBS), *words]
        runpy.run_path(str(JOBS), run_name="__main__")
        sys.exit(0)
    return process


if __name__ == "__main__":
    ranks = [start(rank, int(sys.argv[1]), sys.argv[2:]) for rank in range(int(sys.argv[1]))]
    statuses = {process: os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in ranks}
    print(json.dumps(statuses))
