#!/usr/bin/env python3
"""Dumps the first finding of programs of the suite, replays the dumps, tries the help and runs the written programs.

usage: whole_suite_dumps.py [--keep FOLDER] [NAME...]     NAME: part of a program's name; default: all that need no
                                                         children, ranks or compiler
exit status: 0 where each dump is reproduced and by its program, too, else 1
"""
import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "host" / "replay")]
import run_numsan  # noqa: E402
import watched_forks  # noqa: E402

SUITE = HERE.parent / "suite"


@dataclass
class Replayed:
    """What came of one program. `wrong` is empty where all is as it should be."""

    name: str
    dump: str = ""
    wrong: str = ""
    shown: dict = field(default_factory=dict)


def programs(names=()):
    entries = json.loads((SUITE / "manifest.json").read_text())["programs"]
    found = [SUITE / entry["file"] for entry in entries if not entry["needs"]]
    return [path for path in found if not names or any(name in path.stem for name in names)]


class SuiteDumps:
    """Runs programs in forks of one process that numsan is attached to, and replays here."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.forks = watched_forks.WatchedForks({"dump": self.folder / "dumps"}, env={"DEVICE": "cpu"})

    def run(self, program):
        ended, reports = self.forks.run(program, cwd=self.folder, timeout=120)
        made = Replayed(program.stem)
        findings = [finding for report in reports.values() if report for finding in report["findings"]]
        made.dump = next((finding["dump"] for finding in findings if finding.get("dump")), "")
        if not made.dump:
            made.wrong = f"no dump of {len(findings)} findings: {ended.stderr[-500:]}"
            return made
        script = self.folder / f"{program.stem}.py"
        status, made.shown, said = replay(made.dump, script)
        if status != 0:
            made.wrong = f"exit status {status}: {said or made.shown.get('outcome')}"
            return made
        done = run_numsan.run_forked(script, cwd=self.folder)
        if done.returncode != 0 or len(script.read_text().splitlines()) >= 40:
            made.wrong = f"the written program: {done.describe()}"
        return made

    def close(self):
        self.forks.close()


def replay(dump, script):
    """(exit status, the document, what was complained of) of `numsan replay --try`, without the start of a process."""
    import replay_dump
    out, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        status = replay_dump.main([dump, "--try", "--format", "json", "--script", str(script)])
    return status, json.loads(out.getvalue()) if out.getvalue() else {}, complaints.getvalue()


def help_counts(results):
    """How often help that is code was judged: helps, failed, aside (no change of the op), not_tried."""
    import help_rows
    rows, counts = help_rows.HelpRows(), Counter()
    for result in results:
        for line in result.shown.get("help") or ():
            if not help_rows.is_code(line["text"]):
                continue
            aside = rows.recognise(line["text"]).trial.role == "aside"
            counts["aside" if aside else line["judgement"]] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="numsan-dumps-"))
    folder.mkdir(parents=True, exist_ok=True)
    suite, results = SuiteDumps(folder), []
    for program in programs(arguments.names):
        result = suite.run(program)
        results.append(result)
        judged = Counter(line["judgement"] for line in result.shown.get("help") or ())
        mechanisms = ",".join(one["mechanism"] for one in result.shown.get("mechanisms", ()))
        print(f"{result.name}: {result.wrong or 'reproduced'} {mechanisms} {dict(judged)}", flush=True)
        for line in result.shown.get("help") or ():
            print(f"    {line['judgement']}: {line['text']}\n        {line['said']}", flush=True)
    suite.close()
    counts = help_counts(results)
    reproduced = sum(result.shown.get("reproduced", False) for result in results)
    by_program = sum(not result.wrong for result in results)
    print(f"{sum(bool(result.dump) for result in results)} dumps of {len(results)} programs, {reproduced} reproduced, "
          f"{by_program} by the written program, too; help that is code: {dict(counts)}")
    return 0 if by_program == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
