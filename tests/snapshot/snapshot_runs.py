"""Runs the programs of a snapshot under numsan and collects what each run left: status, output, reports, text.

A fork writes a report only if it found something. A clean one runs a second time with a bad value of our own at the
end, which makes it write one: its coverage and its counts of births are kept, the finding of our own is not.
"""
import pathlib
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import run_numsan  # noqa: E402
import watched_forks  # noqa: E402

SECONDS = 400


class Server(watched_forks.WatchedForks):
    """Keeps what numsan says apart from what the program says."""

    def __init__(self, logs):
        super().__init__({"log": pathlib.Path(logs) / "log-%p.txt"})
        self.logs = logs

    def once(self, program, then=""):
        path, *args = program.command
        with tempfile.TemporaryDirectory(dir=self.folder) as cwd:
            ended, reports = self.run(path, args, cwd, SECONDS, then)
        texts = [text_of(pathlib.Path(self.logs, f"log-{pid}.txt")) for pid in {ended.pid, *reports}]
        return {"status": ended.status, "stdout": ended.stdout, "texts": [text for text in texts if text],
                "pid": ended.pid, "folder": str(self.folder), "reports": list(reports.values())}

    def watched(self, program):
        left = self.once(program)
        if not left["reports"]:
            again = self.once(program, watched_forks.OWN_VALUE)
            left["counted"] = [counted(report) for report in again["reports"]]
        return left


def text_of(path):
    return path.read_text(errors="replace") if path.exists() else ""


def counted(report):
    """What a clean run's report says besides the finding of our own."""
    return report and {**report, "findings": [one for one in report["findings"] if not watched_forks.is_own(one)]}


def watched_alone(program, folder):
    """The program in a process of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    options = {"report": folder / "report-%p.json", "log": folder / "log-%p.txt"}
    done = run_numsan.run_command([run_numsan.PYTHON, *program.command], options=options, cwd=folder, timeout=SECONDS)
    reports = [run_numsan.read_report(path) for path in sorted(folder.glob("report-*.json"))]
    texts = [text_of(path) for path in sorted(folder.glob("log-*.txt"))]
    return {"status": done.returncode, "stdout": done.stdout, "texts": texts, "pid": None, "folder": str(folder),
            "reports": reports}


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
        with ThreadPoolExecutor(jobs) as pool:
            # Long ones first, so that the jobs end together.
            ordered = sorted(programs, key=lambda program: not program.alone)
            results = dict(pool.map(one, ordered))
        for server in servers:
            server.close()
        return results
