#!/usr/bin/env python3
"""How numsan gets on with programs on a device: a list of questions, each answered by programs that are run bare and
watched. Prints a line a question, writes JSON.

usage: attach.py [--device cuda|test] [--only A,B] [--options NUMSAN_OPTIONS] [--jobs N] [--out FILE]
                 [--reports FOLDER]

`test`: the device of tests/fakes/torch_device; what only CUDA has is then not asked. Exit status 1 where an answer is
not the wanted one, 77 where there is no CUDA device.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import device_environment  # noqa: E402
import run_numsan  # noqa: E402

PROGRAMS = HERE / "programs"
MEMORY_LIMIT_MB = 64
SECONDS = 100  # that a program may take


@dataclass(frozen=True)
class Answer:
    yes: bool
    seen: str
    figure: float | None = None  # what a target is held against


class Run:
    """One program bare, or watched; `report` is None where there is none."""

    def __init__(self, done, report):
        self.status, self.stdout, self.stderr, self.report = done.returncode, done.stdout, done.stderr, report

    @property
    def findings(self):
        return self.report["findings"] if self.report else []

    def told(self):
        """The first finding in short, or what there is instead."""
        if self.report is None:
            return f"no report; stderr ends {self.stderr[-300:]!r}"
        if not self.findings:
            return f"{self.report['verdict']}, no finding, {self.report['coverage']['scanned']} ops scanned"
        first = self.findings[0]
        line = (first.get("location") or {}).get("line")
        return f"{first['code']} {first['op']} at line {line}, step {first['step']}, {first['severity']}"


class Asker:
    """Runs the programs of one question on a device, in a folder of its own. Reports go by question and program."""

    def __init__(self, question, device, options, reports, folder):
        self.question, self.device, self.options, self.reports = question, device, options, reports
        self.folder = pathlib.Path(folder) / question
        self.folder.mkdir()

    def _environment(self, env):
        given = {"DEVICE": self.device, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", **(env or {}),
                 "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}
        if self.device == "test":
            given |= device_environment.of_test_device()
        return given

    def _command(self, program):
        path = str(PROGRAMS / program)
        starter = [str(device_environment.FAKES / "run_on_device.py")] if self.device == "test" else []
        return [run_numsan.PYTHON, *starter, path]

    def _run(self, command, environment, report=None):
        try:
            done = subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=SECONDS)
        except subprocess.TimeoutExpired as hung:
            said = [part.decode(errors="replace") if part else "" for part in (hung.stdout, hung.stderr)]
            done = subprocess.CompletedProcess(command, None, said[0], f"{said[1]}\nno end within {SECONDS} s")
        return Run(done, run_numsan.read_report(report) if report else None)

    def bare(self, program, env=None):
        return self._run(self._command(program), run_numsan.plain_environment(self._environment(env)))

    def watched(self, program, env=None):
        report = self.reports / f"{self.question}-{pathlib.Path(program).stem}.json"
        command, environment = run_numsan.attached(self._command(program), report=report, options=dict(self.options),
                                                   env=self._environment(env))
        environment["NUMSAN_CACHE"] = os.environ.get("NUMSAN_CACHE", str(run_numsan.CACHE))
        return self._run(command, environment, report)


def attaches(asker):
    run = asker.watched("train.py")
    coverage = run.report["coverage"] if run.report else {}
    harmless = ("integer", "tier", "allocation", "view", "without output", "captured", "collective")
    missed = {why: count for why, count in coverage.get("skipped", {}).items() if why not in harmless}
    yes = coverage.get("scanned", 0) > 0 and not missed and not coverage["blind_spots"]
    return Answer(yes, f"{run.told()}, {coverage.get('bytes', 0)} bytes; not looked at: {missed or 'nothing'}; "
                       f"blind spots: {coverage.get('blind_spots') or 'none'}")


def same_bits(asker):
    bare, watched = asker.bare("train.py"), asker.watched("train.py")
    yes = bare.status == watched.status == 0 and bare.stdout == watched.stdout
    return Answer(yes, f"exit status {bare.status} and {watched.status}; {bare.stdout.strip()[:80]!r} and "
                       f"{'the same' if bare.stdout == watched.stdout else repr(watched.stdout.strip()[:80])}"
                       f"{'' if yes else '; stderr ends ' + repr((bare.stderr + watched.stderr)[-300:])}")


def silent(asker):
    run = asker.watched("train.py")
    return Answer(run.stderr == "" and not run.findings, run.told() + (f"; stderr {run.stderr[-200:]!r}" if run.stderr
                                                                      else "; nothing on stderr"))


def finds(asker, program="bug.py"):
    run, line = asker.watched(program), run_numsan.marked_line(PROGRAMS / program)
    named = bool(run.findings) and (run.findings[0].get("location") or {}).get("line") == line
    return Answer(named, f"{run.told()}; the bug is in line {line}; exit status {run.status}")


def as_bare(asker, program):
    bare, watched = asker.bare(program), asker.watched(program)
    yes = (bare.status, bare.stdout) == (watched.status, watched.stdout)
    return Answer(yes and bare.status == 0, f"exit status {bare.status} and {watched.status}, printed {bare.stdout!r} "
                  f"and {watched.stdout!r}{'' if yes else '; stderr ends ' + repr(watched.stderr[-300:])}; "
                  f"{watched.told()}")


def workers(asker):
    return as_bare(asker, "workers.py")


def profiler(asker):
    return as_bare(asker, "profiled.py")


def replays(asker, program="graph.py", env=None):
    bare, run = asker.bare(program, env), asker.watched(program, env)
    yes = bool(run.findings) and (bare.status, bare.stdout) == (run.status, run.stdout)
    return Answer(yes, f"{run.told()}; exit status {bare.status} and {run.status}; printed {bare.stdout.strip()!r}"
                       f"{'' if run.status == 0 else '; stderr ends ' + repr(run.stderr[-300:])}")


def turns(asker):
    return replays(asker, env={"BAD_REPLAY": "5000"})  # long after the first tenth of a second, which is read in full


def compiled(asker):
    return replays(asker, "compiled.py")


def sticky(asker):
    bare, run = asker.bare("assertion.py"), asker.watched("assertion.py")
    yes = bool(run.findings) and bare.status == run.status != 0
    return Answer(yes, f"{run.told()}; exit status {bare.status} and {run.status}")


def injection(asker):
    library, mark = asker.folder / "libinjection.so", asker.folder / "injected"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, PROGRAMS / "injection.c"], check=True)
    run = asker.bare("injected.py", {"INJECTED": str(library), "MARK": str(mark)})
    return Answer("honoured True" in run.stdout, f"printed {run.stdout.strip()!r}, exit status {run.status}"
                                                 f"{'' if run.status == 0 else ', ' + repr(run.stderr[-300:])}")


def memory(asker):
    taken = []
    for run in (asker.bare, asker.watched):
        kept = asker.folder / "memory"
        kept.unlink(missing_ok=True)
        run("train.py", {"MEMORY": str(kept)})
        taken.append(int(kept.read_text()) if kept.exists() else None)
    if None in taken:
        return Answer(False, f"a program did not end: {taken}")
    more = (taken[1] - taken[0]) / (1 << 20)
    return Answer(more <= MEMORY_LIMIT_MB, f"{taken[0] >> 20} MB bare, {taken[1] >> 20} MB watched: {more:+.1f} MB, "
                                           f"at most {MEMORY_LIMIT_MB}", more)


@dataclass(frozen=True)
class Question:
    text: str
    ask: object
    only_cuda: bool = False
    wanted: bool = True  # a `no` is a failure; else the answer is only told
    alone: bool = False  # nothing else may use the device meanwhile


QUESTIONS = {
    "attaches": Question("does numsan attach to `python train.py` and scan all it trains", attaches),
    "silent": Question("is a healthy training silent", silent),
    "same": Question("does it end the same, to the bits of its parameters after 20 steps", same_bits),
    "finds": Question("is a bug found at its line", finds),
    "workers": Question("do workers of a DataLoader, forked after the device was used, work as bare", workers),
    "graph": Question("are scans captured into a CUDA graph, and a bad replay found", replays, only_cuda=True),
    "turns": Question("is it found in a late replay, when scans take turns", turns, only_cuda=True),
    "compiled": Question("is a bad step of a model compiled with reduce-overhead found", compiled, only_cuda=True),
    "profiler": Question("does torch.profiler see what it sees bare", profiler, only_cuda=True),
    "sticky": Question("does a device-side assert leave a report with what was found before", sticky, only_cuda=True),
    "memory": Question(f"does it take at most {MEMORY_LIMIT_MB} MB of the device", memory, only_cuda=True,
                       alone=True),
    "injection": Question("does the driver honour a CUDA_INJECTION64_PATH that is set late", injection, only_cuda=True,
                          wanted=False),
}


def asked(question, asker):
    """The answer as plain data."""
    entry = {"question": question.text, "wanted": question.wanted, "answer": None}
    if question.only_cuda and asker.device != "cuda":
        return {**entry, "seen": "not asked: only CUDA has this"}
    try:
        answer = question.ask(asker)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return {**entry, "answer": "no", "seen": f"could not be asked: {error!r}"}
    figure = {} if answer.figure is None else {"figure": answer.figure}
    return {**entry, "answer": "yes" if answer.yes else "no", "seen": answer.seen, **figure}


def ask_all(names, make_asker, jobs, out):
    """{name: answer}; `out` has those that are known at any time, so that running out of time loses no other."""
    answers = {}
    for alone in (False, True):
        several = [name for name in names if QUESTIONS[name].alone == alone]
        with concurrent.futures.ThreadPoolExecutor(1 if alone else jobs) as pool:
            pending = {pool.submit(asked, QUESTIONS[name], make_asker(name)): name for name in several}
            for done in concurrent.futures.as_completed(pending):
                name, entry = pending[done], done.result()
                answers[name] = entry
                print(f"{name:10} {entry['answer'] or '-':4} {entry['question']}: {entry['seen']}", flush=True)
                if out:
                    known = {name: answers[name] for name in QUESTIONS if name in answers}
                    out.write_text(json.dumps(known, indent=1) + "\n")
    return answers


def failed(answers):
    return [name for name, entry in answers.items() if entry["wanted"] and entry["answer"] == "no"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "test"), default="cuda")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(QUESTIONS))
    parser.add_argument("--options", default="raw=1", help="as NUMSAN_OPTIONS, key=value:key=value")
    parser.add_argument("--jobs", type=int, default=max(1, min(4, (os.cpu_count() or 1) // 2)),
                        help="questions at a time")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--reports", type=pathlib.Path)
    given = parser.parse_args()
    unknown = [name for name in given.only if name not in QUESTIONS]
    if unknown:
        parser.error(f"no question {unknown[0]}: there are {', '.join(QUESTIONS)}")
    if given.device == "cuda" and subprocess.run([run_numsan.PYTHON, "-c", "import torch; torch.ones(1).cuda()"],
                                                 capture_output=True).returncode != 0:
        print("attach: no CUDA device here")
        return 77
    with tempfile.TemporaryDirectory(prefix="attach-") as folder:
        reports = (given.reports or pathlib.Path(folder)).resolve()
        reports.mkdir(parents=True, exist_ok=True)
        options = [part.split("=", 1) for part in given.options.split(":") if part]
        answers = ask_all(given.only, lambda name: Asker(name, given.device, options, reports, folder), given.jobs,
                          given.out)
    return 1 if failed(answers) else 0


if __name__ == "__main__":
    sys.exit(main())
