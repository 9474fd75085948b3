"""Runs the programs of a snapshot under numsan and collects what each run left: status, output, reports, text.

A fork writes a report only if it found something. A clean one runs a second time with a bad value of our own at the end,
which makes it write one: its coverage and its counts of births are kept, the finding of our own is not.
"""
import os
import pathlib
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import forked_runs  # noqa: E402
import run_numsan  # noqa: E402

SECONDS = 400
OWN_VALUE = "import torch\nfloat(torch.full((1,), -1.0).log())  # the snapshot's own\n"
OWN = ("aten::log", "<string>")  # the operator, and the file of the innermost frame


class Server:
    """Forks of one process with torch imported and numsan attached. Reports and texts are files of one folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        options = {"report": self.folder / "report-%p.json", "log": self.folder / "log-%p.txt"}
        _, self.environment = run_numsan.attached([], options=options)
        self.runs = forked_runs.ForkedRuns(run_numsan.PYTHON, self.environment)

    def run(self, program, then=""):
        with tempfile.TemporaryDirectory(dir=self.folder) as cwd:
            path, *args = program.command
            ended = self.runs.outcome(path, args, cwd, self.environment, SECONDS, then)
        return left_behind(ended.status, ended.stdout, ended.pid, self.folder, skip=self.runs.server.pid)

    def watched(self, program):
        left = self.run(program)
        if not left["reports"]:
            again = self.run(program, OWN_VALUE)
            left["counted"] = [counted(report) for report in again["reports"]]
        return left


def counted(report):
    """What a clean run's report says besides the finding of our own."""
    findings = [one for one in report["findings"] if (one["op"], (one["stack"] or [{}])[0].get("file")) != OWN]
    return {**report, "findings": findings}


def left_behind(status, stdout, pid, folder, skip=None):
    """What a run left in a folder, which is empty of it afterwards. The report of process `pid` comes first."""
    reports, texts = [], []
    for path in sorted(folder.glob("report-*.json")):
        if path.stem == f"report-{skip}":
            continue
        reports.append(run_numsan.read_report(path))
        path.unlink()
    for path in sorted(folder.glob("log-*.txt")):
        texts.append(path.read_text(errors="replace"))
        path.unlink()
    return {"status": status, "stdout": stdout, "texts": texts, "pid": pid, "folder": str(folder),
            "reports": reports}


def watched_alone(program, folder):
    """The program in a process of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    options = {"report": folder / "report-%p.json", "log": folder / "log-%p.txt"}
    done = run_numsan.run_command([run_numsan.PYTHON, *program.command], options=options, cwd=folder, timeout=SECONDS)
    return left_behind(done.returncode, done.stdout, None, folder)


def run_all(programs, jobs, say):
    """{name: what it left}; `jobs` programs at a time."""
    missing = run_numsan.missing_parts()
    if missing:
        raise SystemExit(f"missing: {', '.join(map(str, missing))}; build first (scripts/build)")
    with tempfile.TemporaryDirectory(prefix="snapshot-") as folder:
        mine, servers = threading.local(), []

        def one(program):
            if program.alone:
                left = watched_alone(program, folder)
            else:
                if not hasattr(mine, "server"):
                    mine.server = Server(folder)
                    servers.append(mine.server)
                left = mine.server.watched(program)
            say(program, left)
            return program.name, left

        run_numsan.CACHE.mkdir(parents=True, exist_ok=True)
        warm = run_numsan.run_command([run_numsan.PYTHON, "-c", "import torch; torch.ones(2).sum()"], cwd=folder,
                                      timeout=SECONDS)
        if warm.returncode != 0 or warm.report is None:
            raise SystemExit(f"a trivial program fails under numsan\n{warm.describe()}")
        os.unlink(warm.report_path)
        with ThreadPoolExecutor(jobs) as pool:
            # Long ones first, so that the jobs end together.
            ordered = sorted(programs, key=lambda program: not program.alone)
            results = dict(pool.map(one, ordered))
        for server in servers:
            server.runs.close()
        return results
