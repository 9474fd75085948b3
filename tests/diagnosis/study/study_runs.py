"""Runs of the study's programs, bare and watched: each in a fork, each kept in a file of its own.

A run is kept with the digest of its program, and not made again while the program is the same.
"""
import hashlib
import json
import pathlib
import sys
import threading

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / "support"))
import forked_runs  # noqa: E402
import run_numsan  # noqa: E402
import watched_forks  # noqa: E402

MODULES = ("numpy", "sklearn.datasets", "sklearn.model_selection", "sklearn.preprocessing", "torchvision")
HEALTHY_SEEDS, WATCHED_HEALTHY, SEEDS, WATCHED = range(8), range(6), range(3), range(1)
HIGHER_IS_BETTER = {"accuracy": True, "return": True, "error": False}


def figure_of(stdout):
    """The figure that a program prints at its end, such that more is better; None without one."""
    words = stdout.split()[-2:]
    if len(words) != 2 or words[0] not in HIGHER_IS_BETTER:
        return None
    return float(words[1]) if HIGHER_IS_BETTER[words[0]] else -float(words[1])


class Runs:
    """The runs kept in a folder. One of these a thread: its two servers run a program at a time."""

    def __init__(self, folder, timeout=120):
        self.folder, self.timeout = pathlib.Path(folder), timeout
        self.bare_server = self.watched_server = None

    def kept(self, program, way, seed):
        """The run of the program as it is today, None where it has to be made."""
        try:
            run = json.loads(self.path(program, way, seed).read_text())
        except (OSError, ValueError):
            return None
        return run if run["digest"] == digest(program) else None

    def path(self, program, way, seed):
        return self.folder / way / f"{program.name.replace('/', '-')}-{seed}.json"

    def source(self, program):
        """The program as a file. Its folder is named after its text: forks of the same text share it."""
        path = self.folder / "programs" / f"{program.name.replace('/', '-')}.py"
        if not path.exists() or path.read_text() != program.text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(program.text)
        return path

    def run(self, program, way, seed, args=()):
        """A run: `bare`, `watched`, or `untrained`, which is bare with no step at all."""
        run = self.kept(program, way, seed)
        if run is None:
            args = ["--seed", seed, *(["--steps", 0] if way == "untrained" else [])]
            run = self.watched(program, args) if way == "watched" else self.bare(program, args)
            path = self.path(program, way, seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"digest": digest(program), **run}))
        return run

    def bare(self, program, args):
        environment = run_numsan.plain_environment()
        if self.bare_server is None:
            self.bare_server = forked_runs.ForkedRuns(run_numsan.PYTHON, environment, MODULES)
        ended = self.bare_server.outcome(self.source(program), args, self.folder, environment, self.timeout)
        return outcome(ended)

    def watched(self, program, args):
        if self.watched_server is None:
            self.watched_server = watched_forks.WatchedForks({"diagnose": 1}, modules=MODULES)
        ended, reports = self.watched_server.run(self.source(program), args, timeout=self.timeout,
                                                 then=watched_forks.OWN_VALUE)
        return {**outcome(ended), "report": reports.get(ended.pid)}

    def close(self):
        for server in (self.bare_server, self.watched_server):
            if server is not None:
                server.close()


def digest(program):
    return hashlib.sha256(program.text.encode()).hexdigest()


def outcome(ended):
    figure = figure_of(ended.stdout) if ended.status == 0 else None
    return {"status": ended.status, "figure": figure,
            "error": "" if ended.status == 0 else ended.stderr.strip().splitlines()[-1:]}


def seeds_of(program, way):
    """The seeds that the study runs a program with."""
    if program.kind is None:
        return {"watched": WATCHED_HEALTHY, "bare": HEALTHY_SEEDS, "untrained": SEEDS}[way]
    return {"watched": WATCHED, "bare": SEEDS, "untrained": range(0)}[way]


def work_of(programs):
    """(program, way, seed) of all runs: healthy ones first, for they are what the others are compared with, then bases
    mixed, so that what an interrupted study has is of all of them."""
    return [(program, way, seed)
            for program in sorted(programs, key=lambda one: (one.kind is not None, digest(one)))
            for way in ("watched", "bare", "untrained") for seed in seeds_of(program, way)]


def run_all(folder, work, jobs, say, make=Runs):
    """Makes all runs of `work`, (program, way, seed) each, with `jobs` threads. The first exception ends it."""
    left, lock, failed = list(reversed(work)), threading.Lock(), []

    def worker():
        runs = make(folder)
        try:
            while not failed:
                with lock:
                    if not left:
                        return
                    program, way, seed = left.pop()
                say(program, way, seed, runs.run(program, way, seed), len(left))
        except Exception as error:  # told to the caller: an exception of a thread is lost
            failed.append(error)
        finally:
            runs.close()

    threads = [threading.Thread(target=worker) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
