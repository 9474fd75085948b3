"""Runs a program with or without numsan and hands back what a user would see: exit status, text, report."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import forked_runs

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("NUMSAN_BUILD", REPO / "build")).resolve()
_venv_python = REPO / ".venv" / "bin" / "python"
PYTHON = os.environ.get("NUMSAN_PYTHON", str(_venv_python if _venv_python.exists() else sys.executable))
LIBRARY = BUILD / "lib" / "libnumsan.so"
COMMAND = BUILD / "bin" / "numsan"
CACHE = BUILD / "cache"
SCHEMA = REPO / "host" / "report" / "report.schema.json"
TRANSFORMERS = ["transformers.models.bert.modeling_bert"]  # `modules` for programs with a model of transformers


@dataclass
class Result:
    """What one run left behind. `report` is None where no readable report was written; `folder` is where it ran."""
    returncode: int
    stdout: str
    stderr: str
    report: dict | None
    report_path: pathlib.Path
    folder: pathlib.Path
    command: list = field(default_factory=list)

    @property
    def findings(self):
        return [] if self.report is None else self.report["findings"]

    def describe(self):
        """For assertion messages: everything one wants to see when a run went wrong."""
        return (f"command: {' '.join(map(str, self.command))}\nexit status: {self.returncode}\n"
                f"--- stdout\n{self.stdout[-2000:]}\n--- stderr\n{self.stderr[-6000:]}\n"
                f"--- findings\n{json.dumps(self.findings, indent=1)[:4000]}")


def missing_parts():
    """The build products that are not there, as paths."""
    return [path for path in (LIBRARY, COMMAND) if not path.exists()]


def plain_environment(env=None):
    """The environment of a run without numsan: ours, less whatever would attach it, threads pinned: sums repeat.
    Inductor uses no vector instructions: to find out which there are, it would start up to six processes that import
    torch."""
    result = {key: value for key, value in os.environ.items() if not key.startswith("NUMSAN_") and key != "LD_PRELOAD"}
    result.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", PYTHONDONTWRITEBYTECODE="1",
                  TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", TRITON_CACHE_DIR=str(CACHE / "triton"),
                  TORCHINDUCTOR_CACHE_DIR=str(CACHE / "inductor"), TORCHINDUCTOR_VEC_ISA_OK="0")
    result.update(env or {})
    return result


def option_text(options):
    """{'tier': 'full', 'halt': 1} as NUMSAN_OPTIONS has it: tier=full:halt=1"""
    return ":".join(f"{key}={value}" for key, value in options.items())


def attached(command, *, launcher="preload", options=None, report=None, env=None):
    """(argv, environment) of `command` with numsan attached, for callers that need their own Popen."""
    options = {"report": report, **(options or {})} if report is not None else dict(options or {})
    environment = plain_environment({"NUMSAN_CACHE": str(CACHE), **(env or {})})
    if launcher == "preload":
        others = environment.get("LD_PRELOAD", "")
        environment["LD_PRELOAD"] = f"{LIBRARY}:{others}" if others else str(LIBRARY)
        environment["NUMSAN_OPTIONS"] = option_text(options)
        return list(map(str, command)), environment
    if launcher == "run":
        flags = [str(part) for key, value in options.items() for part in (f"--{key}", value)]
        return [str(COMMAND), "run", *flags, "--", *map(str, command)], environment
    raise ValueError(f"launcher is 'preload' or 'run', not {launcher!r}")


def _finish(command, environment, folder, report_path, timeout):
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=timeout)
    return Result(done.returncode, done.stdout, done.stderr, read_report(report_path), report_path,
                  pathlib.Path(folder), command)


def read_report(path):
    """The report at `path`, None where there is none or it is not JSON (tests that care read the bytes themselves)."""
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError):
        return None


def run_command(command, *, launcher="preload", options=None, env=None, cwd=None, timeout=120):
    """Runs a whole command line under numsan; the report goes to cwd/report.json unless `options` says otherwise."""
    folder = pathlib.Path(cwd or tempfile.mkdtemp(prefix="numsan-test-"))
    options = dict(options or {})
    options.setdefault("report", str(folder / "report.json"))
    argv, environment = attached(command, launcher=launcher, options=options, env=env)
    return _finish(argv, environment, folder, pathlib.Path(options["report"]), timeout)


def run(program, *, launcher="preload", options=None, args=(), env=None, cwd=None, timeout=120):
    """Runs a Python program under numsan."""
    return run_command([PYTHON, str(program), *args], launcher=launcher, options=options, env=env, cwd=cwd,
                       timeout=timeout)


def run_plain(program, *, args=(), env=None, cwd=None, timeout=120):
    """Runs a Python program without numsan, in the same environment otherwise."""
    return run_plain_command([PYTHON, str(program), *args], env=env, cwd=cwd, timeout=timeout)


_servers = {}


def run_forked(program, *, args=(), cwd=None, timeout=120, any_end=False, modules=()):
    """run_plain, of a program that imports torch, in a fork of a process that has: for programs that only compute.
    One that fails runs again in a process of its own, for its traceback, unless `any_end` is as good. That process has
    imported `modules`, too."""
    environment, key = plain_environment(), ("plain", *modules)
    if key not in _servers:
        _servers[key] = forked_runs.ForkedRuns(PYTHON, environment, modules)
    folder = pathlib.Path(cwd or tempfile.mkdtemp(prefix="numsan-test-"))
    if any_end:
        how = _servers[key].outcome(program, args, folder, environment, timeout)
        ended = None if how.status is None else (how.status, how.stdout, how.stderr)
    else:
        ended = _servers[key].run(program, args, folder, environment, timeout)
    if ended is None:
        return run_plain(program, args=args, cwd=folder, timeout=timeout)
    return Result(*ended, None, folder / "report.json", folder, [PYTHON, str(program), *args])


def watched_forks_of(options=None, env=None, modules=()):
    """The one server of watched forks with these options, which has imported `modules`, too."""
    import watched_forks
    key = option_text(options or {}), json.dumps(env), *modules
    if key not in _servers:
        _servers[key] = watched_forks.WatchedForks(options, env, modules)
    return _servers[key]


def run_watched_fork(program, *, options=None, args=(), env=None, late=None, cwd=None, timeout=120, clean=False,
                     modules=()):
    """run, in a fork of a process that numsan is attached to (watched_forks.py). `late` is environment that is read
    only when the program runs. With `clean` a bad value of our own follows the program, so that there is a report; its
    finding and text are taken out again, and must be there."""
    import watched_forks
    folder = pathlib.Path(cwd or tempfile.mkdtemp(prefix="numsan-test-"))
    then = watched_forks.OWN_VALUE if clean else ""
    ended, reports = watched_forks_of(options, env, modules).run(program, args, folder, timeout, then, late)
    result = Result(ended.status, ended.stdout, ended.stderr, reports.get(ended.pid), folder / "report.json", folder,
                    [PYTHON, str(program), *args])
    return watched_forks.without_own(result) if clean else result


def run_plain_command(command, *, env=None, cwd=None, timeout=120):
    """Runs a whole command line without numsan."""
    folder = pathlib.Path(cwd or tempfile.mkdtemp(prefix="numsan-test-"))
    return _finish(list(map(str, command)), plain_environment(env), folder, folder / "report.json", timeout)


def marked_line(path, mark="# BUG"):
    """The number of the one line of `path` that ends with `mark`."""
    lines = [number for number, text in enumerate(pathlib.Path(path).read_text().splitlines(), 1)
             if text.rstrip().endswith(mark)]
    if len(lines) != 1:
        raise ValueError(f"{path}: {len(lines)} lines end with {mark!r}, expected one")
    return lines[0]


def validate(report):
    """Fails with the first violation, and where it is, when `report` is not what the schema asks for."""
    import jsonschema
    schema = json.loads(SCHEMA.read_text())
    errors = sorted(jsonschema.Draft202012Validator(schema).iter_errors(report), key=lambda error: list(error.path))
    if errors:
        place = "/".join(map(str, errors[0].path))
        raise AssertionError(f"report breaks its schema at /{place}: {errors[0].message[:500]} ({len(errors)} in all)")
