"""Runs suite programs bare, under numsan or under a baseline, and keeps what each run left behind."""
import ast
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import reports

SUITE = pathlib.Path(__file__).resolve().parent
REPO = SUITE.parents[1]
_VENV = REPO / ".venv" / "bin" / "python"
PYTHON = os.environ.get("NUMSAN_PYTHON", str(_VENV) if _VENV.exists() else "python3")
sys.path.insert(0, str(REPO / "tests" / "support"))
import forked_runs  # noqa: E402
import run_numsan  # noqa: E402
import watched_forks  # noqa: E402

ATTACHING = ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")


class Runner:
    """Runs programs on one device. `cache` holds the bare runs, by the program's content. With `fork`
    these are forks of processes that have torch, and so are those under numsan, where the program
    needs no more than that."""

    def __init__(self, cache, device="cpu", timeout=180, fork=False):
        self.servers = threading.local() if fork else None
        self.cache = pathlib.Path(cache).resolve()
        self.device = device
        self.timeout = timeout
        self.cache.mkdir(parents=True, exist_ok=True)
        versions = "import sys, torch; print(sys.version, torch.__version__)"
        self.versions = subprocess.run([PYTHON, "-c", versions], env=self.environment(),
                                       capture_output=True, text=True, check=True).stdout

    def environment(self, program=None):
        """Our environment, less what would attach a tool, with threads pinned so that sums repeat. What
        torch.compile keeps is kept for each program: two that run at once share no file. Inductor uses
        no vector instructions, and need not find out which there are."""
        kept_for = program.stem if program else "common"
        kept = {key: value for key, value in os.environ.items()
                if key not in ATTACHING
                and (not key.startswith("NUMSAN_") or key == "NUMSAN_CACHE")}
        kept.setdefault("NUMSAN_CACHE", str(run_numsan.CACHE))  # the adapter that other tests compiled
        return {**kept, "DEVICE": self.device, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
                "PYTHONDONTWRITEBYTECODE": "1", "TORCHINDUCTOR_VEC_ISA_OK": "0",
                "TORCHINDUCTOR_CACHE_DIR": str(self.cache / "inductor" / kept_for),
                "TRITON_CACHE_DIR": str(self.cache / "triton" / kept_for)}

    def execute(self, command, folder, timeout=None, program=None):
        """{exit_status, stdout, stderr, seconds} of one command; exit status None where it ran out
        of time."""
        started = time.monotonic()
        with subprocess.Popen(command, cwd=folder, env=self.environment(program), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, errors="replace",
                              start_new_session=True) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout or self.timeout)
                status = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # its own session: children go with it
                stdout, stderr = process.communicate()
                stderr, status = f"{stderr}\nno end in time", None
        result = {"exit_status": status, "stdout": stdout, "stderr": stderr[-4000:]}
        return {**result, "seconds": round(time.monotonic() - started, 3)}

    def bare(self, program, again=False):
        """The program alone; run once for each content, interpreter, torch and device, and `again`
        where it is asked for."""
        fork = self.servers is not None and not again
        parts = [program.read_bytes(), *map(str.encode, (self.versions, PYTHON, self.device))]
        parts += [b"fork"] if fork else []  # it has no times to compare
        parts += [b"fixed"] if os.environ.get("FIXED") == "1" else []
        key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]
        kept = self.cache / f"bare-{program.stem}-{key}.json"
        try:
            if not again:
                return json.loads(kept.read_text())
        except (OSError, ValueError):
            pass
        with tempfile.TemporaryDirectory(prefix="suite-") as folder:
            result = (self.forked_bare(program, folder) if fork else None) or \
                self.execute([PYTHON, str(program)], folder, program=program)
        if result["exit_status"] is not None:
            partial = kept.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(result))
            partial.replace(kept)
        return result

    def forked_bare(self, program, folder):
        """As `execute`, without `seconds`; None where only a process of its own will do."""
        if needs_own_process(program):
            return None
        environment = self.environment(program)
        if not hasattr(self.servers, "mine"):
            self.servers.mine = forked_runs.ForkedRuns(PYTHON, environment)
        ended = self.servers.mine.run(program, (), folder, environment, self.timeout)
        return ended and dict(zip(("exit_status", "stdout", "stderr"), ended), seconds=None)

    def watched(self, program, command_of, again=False):
        """The program under a tool, beside its bare run (see there for `again`).
        `command_of(program, folder)` gives (command, glob of its reports)."""
        bare = self.bare(program, again)
        with tempfile.TemporaryDirectory(prefix="suite-") as folder:
            command, pattern = command_of(program, pathlib.Path(folder))
            done = self.execute(command, folder, program=program)
            paths = list(pathlib.Path(folder).glob(pattern))
            findings, problems = reports.read(paths, program)
        if not paths:
            problems.append(f"no report; stderr ends: {done['stderr'][-300:]!r}")
        if bare["exit_status"] != 0:
            problems.append(f"the bare program ended with {bare['exit_status']}")
        return {"findings": findings, "exit_status": done["exit_status"],
                "bare_exit_status": bare["exit_status"], "problems": problems,
                "same_output": done["stdout"] == bare["stdout"], "reports": len(paths),
                "seconds": done["seconds"], "bare_seconds": bare["seconds"]}

    def watched_fork(self, program, options):
        """As `watched` under numsan, in a fork of a process that numsan is attached to. A clean one
        writes no report: a bad value of our own follows a control, and a bug program that had no
        finding, so that silence is not taken for health where numsan did not look."""
        if not hasattr(self.servers, "watched"):
            self.servers.watched = watched_forks.WatchedForks(
                {**options, "verbosity": 0, "log": "none"}, self.environment())
        server = self.servers.watched
        bare, started = self.bare(program), time.monotonic()
        with tempfile.TemporaryDirectory(prefix="suite-") as folder:
            healthy = program.parent.name == "controls" or os.environ.get("FIXED") == "1"
            then = watched_forks.OWN_VALUE if healthy else ""
            ended, found = server.run(program, (), folder, self.timeout, then)
            if not found:
                _, found = server.run(program, (), folder, self.timeout, watched_forks.OWN_VALUE)
        seconds, problems, kept = round(time.monotonic() - started, 3), [], []
        for report in found.values():
            if report is None:
                problems.append("a report is not readable")
                continue
            kept.append([reports.flat(one, program) for one in report["findings"]
                         if not watched_forks.is_own(one)])
        if not found:
            problems.append(f"no report; stderr ends: {ended.stderr[-300:]!r}")
        if bare["exit_status"] != 0:
            problems.append(f"the bare program ended with {bare['exit_status']}")
        return {"findings": reports.merged(kept), "exit_status": ended.status,
                "bare_exit_status": bare["exit_status"], "problems": problems,
                "same_output": ended.stdout == bare["stdout"], "reports": len(found),
                "seconds": seconds, "bare_seconds": None}

    def watch_under_baseline(self, name, entries, say):
        """{id: run} of all entries under a baseline, one after the other, in forks of one process.

        No `bare_seconds`: a fork does not pay for the import of torch, so times do not compare.
        """
        scripts, runs = SUITE / "baselines", {}
        with tempfile.TemporaryDirectory(prefix="suite-") as folder:
            out = pathlib.Path(folder)
            programs = [str(SUITE / entry["file"]) for entry in entries]
            command = [PYTHON, str(scripts / "run_all.py"), "--only", name, folder, *programs]
            commands = [command]
            if name == "dynamics_learner":  # it answers when it has seen the other programs
                commands.append([PYTHON, str(scripts / f"{name}.py"), str(out / name)])
            for command in commands:
                done = self.execute(command, folder, self.timeout * len(entries))
                if done["exit_status"] != 0:
                    raise SystemExit(f"{name} fails: {done}")
            ended = json.loads((out / f"{name}.json").read_text())
            for entry in entries:
                program = SUITE / entry["file"]
                runs[entry["id"]] = self.forked(program, out / name / program.stem,
                                                ended[program.stem])
                say(entry, runs[entry["id"]])
        return runs

    def forked(self, program, left, ended):
        """What one run under a baseline left behind in `left`.json and .out, beside the bare run."""
        bare, report = self.bare(program), left.with_suffix(".json")
        findings, problems = reports.read([report], program)
        if report.exists() and (failed := json.loads(report.read_text()).get("failed")):
            problems.append(f"the program failed: {failed.splitlines()[0]}")
        printed = left.with_suffix(".out").read_text(errors="replace")
        return {"findings": findings, **ended, "bare_exit_status": bare["exit_status"],
                "problems": problems, "same_output": printed == bare["stdout"],
                "reports": int(report.exists()), "bare_seconds": None}

    def warm_up(self, command_of):
        """Lets a tool build what it builds once, so that it is not built inside a program's time
        limit."""
        program = self.cache / "warm_up.py"
        program.write_text("import torch\nprint(torch.ones(2).sum().item())\n")
        with tempfile.TemporaryDirectory(prefix="suite-") as folder:
            done = self.execute(command_of(program, pathlib.Path(folder))[0], folder, 1800)
        if done["exit_status"] != 0 or done["stdout"] != "2.0\n":
            raise SystemExit(f"a trivial program fails under the tool: {done}")

    def watch_all(self, entries, command_of, jobs, say, options=None):
        """{id: run} of all entries, `jobs` at a time; `say(entry, run)` is called as each ends.
        `options` are numsan's, for forks."""
        self.warm_up(command_of)

        def one(entry):
            program = SUITE / entry["file"]
            if self.servers is not None and options is not None and not needs_own_process(program):
                run = self.watched_fork(program, options)
            else:
                run = self.watched(program, command_of)
            say(entry, run)
            return entry["id"], run

        with ThreadPoolExecutor(jobs) as pool:
            return dict(pool.map(one, entries))


def needs_own_process(program):
    """Whether it has children, ranks or a compiler."""
    return re.search(r"# label:.*\bneeds=\w", program.read_text()) is not None


def baselines():
    """{name: title} of all baselines, in the order of their driver."""
    text = (SUITE / "baselines" / "driver.py").read_text()
    named = next(node for node in ast.parse(text).body if isinstance(node, ast.Assign)
                 and node.targets[0].id == "BASELINES")
    return ast.literal_eval(named.value)


def numsan_command(numsan, options):
    """How to run a program under numsan; one report a process."""
    def command_of(program, folder):
        flags = [part for key, value in options.items() for part in (f"--{key}", str(value))]
        reports_to = str(folder / f"{program.stem}-%p.json")
        return [str(numsan), "run", *flags, "--verbosity", "0", "--log", "none",
                "--report", reports_to, "--", PYTHON, str(program)], f"{program.stem}-*.json"
    return command_of
