"""A part of the acceptance: commands with a time limit of their own, and what is made of what they wrote."""
import os
import pathlib
import signal
import subprocess
import time
from dataclasses import dataclass, field


@dataclass
class Setting:
    """What holds for all parts."""
    root: pathlib.Path
    build: pathlib.Path
    work: pathlib.Path  # reports and what parts leave behind, by part
    python: str
    device: str  # cuda, or test: tests/fakes' device
    carried: pathlib.Path | None
    tiers: list
    options: str  # further NUMSAN_OPTIONS of watched runs
    jobs: int
    commit: str
    out: pathlib.Path | None = None  # the folder of results; None: `work`
    probe: pathlib.Path | None = None  # numsan_gpu_probe, built before; None: the one that the part `build` builds

    def kept(self, name):
        """A file that is in the folder of results as soon as it is written."""
        return (self.out or self.work) / name

    def reports(self, part):
        return self.work / "reports" / part

    def result(self, part):
        return self.work / f"{part}.json"


@dataclass
class Command:
    argv: list
    env: dict = field(default_factory=dict)
    may_fail: bool = False  # its exit status is an answer, not a failure


@dataclass
class Part:
    """`commands(setting)` run in order until one fails. `read(setting, texts)` gives (line, data, passed) of what they
    printed and wrote; it may raise ValueError, KeyError or OSError where that is not what it should be."""
    name: str
    about: str
    seconds: int
    commands: object
    read: object
    needs_gpu: bool = True
    on_test_device: bool = True


def run_command(command, setting, limit, log):
    """(exit status, None: ran out of time; what it printed). Its children end with it."""
    argv = [str(word) for word in command.argv]
    log.write(f"\n$ {' '.join(argv)}\n")
    log.flush()
    env = {**os.environ, "NUMSAN_BUILD": str(setting.build), "NUMSAN_PYTHON": setting.python,
           "NUMSAN_CACHE": str(setting.build / "cache"), **command.env}
    with subprocess.Popen(argv, cwd=setting.root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            text, status = process.communicate(timeout=max(limit, 1))[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, status = process.communicate()[0], None
    said = text.decode(errors="replace")
    log.write(said)
    return status, said


def run(part, setting, limit, log):
    """{result, seconds, line, data}. Never raises for what a part does."""
    started = time.monotonic()
    allowed = min(part.seconds, limit)
    log.write(f"\n==== {part.name}, at most {allowed:.0f} s\n")
    texts, result = [], "passed"
    try:
        for command in part.commands(setting):
            status, text = run_command(command, setting, allowed - (time.monotonic() - started), log)
            texts.append(text)
            if status is None:
                result = "timed out"
                break
            if status != 0 and not command.may_fail:
                result = "failed"
                break
        line, data, passed = part.read(setting, texts)
        if result == "passed" and not passed:
            result = "failed"
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        last = texts[-1].strip().splitlines()[-1:] if texts else []
        line, data = f"{last[0] if last else 'nothing printed'} ({type(error).__name__}: {error})"[:400], {}
        result = "failed" if result == "passed" else result
    return {"result": result, "seconds": round(time.monotonic() - started, 1), "line": line, "data": data}
