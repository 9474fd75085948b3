"""Runs of programs in forks of a process that has imported torch and that numsan is attached to.

For tests of what numsan reports of a program. Attaching itself, exit status, environment and the start of a process
are not seen here: tests of those run a process of its own. A fork writes a report only if it found something. OWN_VALUE
after a program that should be clean makes it write one, which shows that numsan was looking.
"""
import pathlib
import re
import tempfile

import forked_runs
import run_numsan

OWN_VALUE = "import torch\nfloat(torch.full((1,), -1.0).log())  # a bad value that the program reads\n"
OWN = ("aten::log", "<string>")  # the operator, and the file of the innermost frame


class WatchedForks:
    """One server, for one set of options. Reports are written to a folder that ends with it, and taken after each
    run."""

    def __init__(self, options=None, env=None, modules=()):
        self.kept = tempfile.TemporaryDirectory(prefix="numsan-forks-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self.kept.name)
        options = {"report": self.folder / "report-%p.json", **(options or {})}
        _, self.environment = run_numsan.attached([], options=options, env=env)
        self.server = forked_runs.ForkedRuns(run_numsan.PYTHON, self.environment, modules)

    def run(self, program, args=(), cwd=None, timeout=120, then="", late=None):
        """(how it ended, {process: report}). `late` is environment that a program reads only when it runs."""
        environment = {**self.environment, **(late or {})}
        ended = self.server.outcome(program, args, cwd or self.folder, environment, timeout, then)
        reports = {}
        for path in sorted(self.folder.glob("report-*.json")):
            process = int(path.stem.removeprefix("report-").split("-")[0])
            if process != self.server.server.pid:
                reports[process] = run_numsan.read_report(path)
                path.unlink()
        return ended, reports

    def close(self):
        self.server.close()


def is_own(finding):
    """Whether a finding is of OWN_VALUE."""
    return (finding["op"], (finding["stack"] or [{}])[0].get("file")) == OWN


def without_own(result):
    """The result of a run that OWN_VALUE followed, as if it had not: its finding must be there, the last one, and
    numsan must have said it. What else was found and said stays."""
    own = [finding for finding in result.findings if is_own(finding)]
    if len(own) != 1:
        raise AssertionError(f"numsan was not looking: {len(own)} findings of a bad value\n{result.describe()}")
    run_numsan.validate(result.report)
    result.report = {**result.report, "findings": [one for one in result.report["findings"] if one not in own]}
    if not result.report["findings"]:
        result.report["verdict"] = "clean"
        # All that was said is about that value: its finding, two lines of the summary, and what is seen of no program.
        started = re.search(rf"^{own[0]['severity']}\[{own[0]['code']}\]: ", result.stderr, re.M)
        said = re.findall(r"^(?:numsan:|error\[|warning\[|info\[)", result.stderr, re.M)
        if started is None or len(said) != 3 + bool(result.report["coverage"]["blind_spots"]):
            raise AssertionError(f"numsan said more than it reports, or less\n{result.describe()}")
        result.stderr = result.stderr[:started.start()]
    return result
