"""Runs of torch programs in forks of one process (fork_server.py): none of them imports torch."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass

from compiled_once import compiled_once

HERE = pathlib.Path(__file__).resolve().parent
SERVER = HERE / "fork_server.py"
# What a program reads when it runs, and not while torch is imported.
READ_LATE = ("DEVICE", "PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def fork_end():
    """The library by which the server's children end sooner (fork_end.c)."""
    import run_numsan  # which imports this
    source = HERE / "fork_end.c"
    return compiled_once(source, run_numsan.CACHE / "tests" / "fork_end.so", lambda output: [
        "cc", "-O1", "-Wall", "-Wextra", "-fPIC", "-shared", source, "-o", output, "-ldl"])


@dataclass
class Ended:
    """How a fork ended. `status` is None where it did not end in time."""
    pid: int
    status: int | None
    stdout: str
    stderr: str


class ForkedRuns:
    """One server, for programs of one environment, one at a time. `modules` are imported once, beside torch."""

    def __init__(self, python, environment, modules=()):
        self.environment = self.read_early(environment)
        self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            preloaded = filter(None, (environment.get("LD_PRELOAD"), str(fork_end())))
            self.server = subprocess.Popen([python, str(SERVER), str(other.fileno()), *modules],
                                           env={**environment, "LD_PRELOAD": ":".join(preloaded)},
                                           pass_fds=[other.fileno()], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, cwd="/")

    @staticmethod
    def read_early(environment):
        return {key: value for key, value in environment.items() if key not in READ_LATE}

    def run(self, program, args, folder, environment, timeout):
        """(exit status, stdout, stderr) of a program that ended well. None where a process of its own is needed:
        the program failed, so that tracebacks and signals count, or did not end in time, or needs another
        environment."""
        if self.read_early(environment) != self.environment:
            return None
        ended = self.outcome(program, args, folder, environment, timeout)
        return (0, ended.stdout, ended.stderr) if ended.status == 0 else None

    def outcome(self, program, args, folder, environment, timeout, then=""):
        """How the program ended, well or not. `then` is Python code that runs after the program's own."""
        request = json.dumps({"program": str(program), "args": list(map(str, args)), "folder": str(folder),
                              "environment": environment, "then": then})
        with open(os.devnull) as nothing, tempfile.TemporaryFile("w+", errors="replace") as out, \
                tempfile.TemporaryFile("w+", errors="replace") as err:
            socket.send_fds(self.control, [request.encode()], [nothing.fileno(), out.fileno(), err.fileno()])
            pid, status = self.ended(timeout)
            out.seek(0)
            err.seek(0)
            return Ended(pid, status, out.read(), err.read())

    def ended(self, timeout):
        """(pid, exit status) of the child; None for the status of a child that had to be killed."""
        self.control.settimeout(None)
        child = int(self.control.recv(100))
        self.control.settimeout(timeout)
        try:
            return child, int(self.control.recv(100))
        except TimeoutError:
            os.killpg(child, signal.SIGKILL)
            self.control.settimeout(None)
            self.control.recv(100)
            return child, None

    def close(self):
        self.control.close()
        self.server.wait()
