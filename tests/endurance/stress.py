#!/usr/bin/env python3
"""Random op programs (stress/program.py) round after round, each with a seed of its own, without numsan and with it.

usage: stress.py [--minutes 30] [--seed N] [--programs N]
       stress.py --rounds 1 --seed N --kind births --options tier=boundary     runs one round again

A round is right when both runs end well with the same output, a healthy one adds nothing to it, and in one with births
each error is told at a line of stress/births.py. Prints a line a round and ends with status 1 at the first that is
wrong.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import retries  # noqa: E402
import run_numsan  # noqa: E402

PROGRAM, BIRTHS = HERE / "stress" / "program.py", HERE / "stress" / "births.py"
KINDS = ("healthy", "births")
OPTIONS = ("", "tier=boundary", "escape=any", "tier=sentinel", "history=0:max_findings=1000", "record=recording-%p",
           "dump=dumps:dump_findings=1000")
LIMIT = 900  # seconds for one run


@dataclass
class Ended:
    status: int
    stdout: str
    stderr: str
    peak: int  # bytes


@dataclass
class Round:
    """What came of one round; it is right where nothing is `wrong`."""
    seed: int
    kind: str
    options: str
    seconds: float = 0
    findings: int = 0
    ops: int = 0
    peaks: tuple = ()
    wrong: list = field(default_factory=list)

    def line(self):
        more = f"{self.findings} findings, " if self.kind == "births" else ""
        return (f"seed {self.seed} {self.kind:7} {self.options or 'no options':27} {self.seconds:5.0f} s  "
                f"{self.ops} ops, {more}peak {self.peaks[0] >> 20} and {self.peaks[1] >> 20} MB  "
                f"{'; '.join(self.wrong) or 'right'}")


def start(folder, arguments, environment):
    folder.mkdir(parents=True)
    with open(folder / "stdout", "w") as out, open(folder / "stderr", "w") as err:
        return subprocess.Popen([run_numsan.PYTHON, str(PROGRAM), *map(str, arguments)], cwd=folder, env=environment,
                                stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)


def ended(process, folder, limit):
    """How it ended. One that hangs is made to say where its threads are, and killed."""
    late, signals = time.monotonic() + limit, iter((signal.SIGABRT, signal.SIGKILL))
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > late:
            os.kill(process.pid, next(signals))
            late += 10
        time.sleep(0.1)
    process.returncode = os.waitstatus_to_exitcode(status)
    try:
        os.killpg(process.pid, signal.SIGKILL)  # its children, if any are left
    except ProcessLookupError:
        pass
    return Ended(process.returncode, (folder / "stdout").read_text(), (folder / "stderr").read_text(),
                 used.ru_maxrss << 10)


def births():
    """The numbers of the lines that make bad values."""
    return {number for number, text in enumerate(BIRTHS.read_text().splitlines(), 1) if text.endswith("# BIRTH")}


def judge(result, bare, watched, reports):
    """Says in `result` what is wrong."""
    wrong = result.wrong
    if bare.status != 0:
        wrong.append(f"without numsan the program ends with {bare.status}")
    if watched.status != bare.status:
        wrong.append(f"with numsan it ends with {watched.status}")
    if watched.stdout != bare.stdout:
        pairs = zip(bare.stdout.splitlines(), watched.stdout.splitlines())
        first = next((number for number, (a, b) in enumerate(pairs, 1) if a != b), "end")
        wrong.append(f"stdout differs, first in line {first}")
    if not reports or None in reports or not any(report["coverage"]["ops"] for report in reports):
        wrong.append("numsan was not looking")
        return
    result.ops = sum(report["coverage"]["ops"] for report in reports)
    found = [finding for report in reports for finding in report["findings"]]
    result.findings = len(found)
    if "numsan: off" in watched.stderr:
        wrong.append("numsan turned itself off")
    if result.kind == "healthy":
        if found or watched.stderr != bare.stderr:
            wrong.append(f"{len(found)} findings, and said: {watched.stderr[:300]!r}")
        return
    if not found:
        wrong.append("no finding")
    lines = births()
    for finding in found:
        place = finding["location"] or {"file": "nowhere", "line": 0}
        if finding["severity"] == "error" and not (place["file"] == str(BIRTHS) and place["line"] in lines):
            wrong.append(f"an error at {place['file']}:{place['line']}")


def torch_hung(bare, watched):
    """A forked child of the run without numsan waited for ever, as one of torch's may: it finds locks held."""
    said = f"a forked child ended with {-signal.SIGABRT}"
    return watched.status == 0 and bare.status != 0 and said in bare.stderr


def one_round(seed, kind, options, programs, folder, limit=LIMIT):
    """Runs both at once, in folders of `folder`. Once more where torch alone hung, which says nothing of numsan."""
    result, *runs = run_round(seed, kind, options, programs, folder, limit)
    if not torch_hung(*runs):
        return result
    retries.note(f"stress seed {seed} {kind}", "without numsan a forked child of the program hung")
    return run_round(seed, kind, options, programs, folder / "again", limit)[0]


def run_round(seed, kind, options, programs, folder, limit):
    """The round, and how the runs without and with numsan ended."""
    result, began = Round(seed, kind, options), time.monotonic()
    arguments = [seed, programs, kind]
    environment = run_numsan.plain_environment({"PYTHONHASHSEED": "0"})
    chosen = {"report": "report-%p.json", **dict(pair.split("=", 1) for pair in options.split(":") if pair)}
    _, with_numsan = run_numsan.attached([], options=chosen, env={"PYTHONHASHSEED": "0"})
    processes = [start(folder / "bare", arguments, environment), start(folder / "watched", arguments, with_numsan)]
    bare, watched = (ended(process, folder / name, limit) for process, name in zip(processes, ("bare", "watched")))
    result.seconds, result.peaks = time.monotonic() - began, (bare.peak, watched.peak)
    judge(result, bare, watched, [run_numsan.read_report(path) for path in (folder / "watched").glob("report-*.json")])
    return result, bare, watched


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=1 << 30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=60, help="of each of the four threads")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--options")
    given = parser.parse_args()
    began, done, ops = time.monotonic(), 0, 0
    while done < given.rounds and time.monotonic() - began < given.minutes * 60:
        kind = given.kind or KINDS[done % 2]
        options = OPTIONS[done // 2 % len(OPTIONS)] if given.options is None else given.options
        folder = pathlib.Path(tempfile.mkdtemp(prefix="numsan-stress-"))
        result = one_round(given.seed + done, kind, options, given.programs, folder)
        print(result.line(), flush=True)
        if result.wrong:
            print(f"what it left is in {folder}")
            return 1
        subprocess.run(["rm", "-r", str(folder)], check=True)
        done, ops = done + 1, ops + result.ops
    print(f"{done} rounds of {given.programs} programs on each of four threads, {ops} ops under numsan, "
          f"{(time.monotonic() - began) / 60:.1f} minutes: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
