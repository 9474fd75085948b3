"""Runs programs in children of one process that has imported torch, which takes most of the time of a small program.

usage: fork_server.py SOCKET [MODULE ...]    the number of an inherited socket; forked_runs.py is at its other end.
Modules are imported before the first child, too.

A child ends as any interpreter does up to the callbacks of atexit and numsan's end, which therefore runs while Python
is still there. Then files are written. Python's objects and those of C++ libraries are not taken apart, which takes
longer than a small program: no __del__ runs there. What is decided when a process starts or torch is loaded is the
server's, too: options and environment of the interpreter, libraries, the seed of hashes.
"""
import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pathlib
import signal
import socket
import sys
import types

SERVER = os.getpid()
exit_status = None


def leave():
    """Ends a child whose exit status is known. The callback that was registered first runs last."""
    if os.getpid() == SERVER or exit_status is None:
        return
    left_open = [file for file in gc.get_objects() if issubclass(type(file), io.IOBase)]  # none of the server's: frozen
    for file in (sys.stdout, sys.stderr, *left_open):
        with contextlib.suppress(Exception):  # closed, for reading, or of a kind that the program made
            file.flush()
    ctypes.PyDLL(None).exit(exit_status)  # with Python's lock


atexit.register(leave)
gc.disable()  # collections are a sixth of the time that the imports take

import torch
import torch._dynamo  # every optimizer's first step imports it
import torch.utils.data


def serve(control):
    """Forks for each request and tells how its child ended. Returns in the children only, with the request."""
    while True:
        text, files, _, _ = socket.recv_fds(control, 1 << 20, 3)
        if not text:
            os._exit(0)
        child = os.fork()
        if child == 0:
            os.setsid()  # who kills it kills what it started, too
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            control.close()
            return json.loads(text)
        for file in files:
            os.close(file)
        control.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        control.send(str(os.waitstatus_to_exitcode(status)).encode())


def main_module(request):
    """The code of the program and the module to run it in, in a process that looks as if it had begun with it."""
    program = pathlib.Path(request["program"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = [request["program"], *request["args"]]
    sys.path[0] = str(program.parent)
    module = types.ModuleType("__main__")
    module.__file__ = request["program"]
    sys.modules["__main__"] = module
    return compile(program.read_bytes(), request["program"], "exec"), module


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    ctypes.CDLL(None).end_forks_early()
    gc.freeze()  # or the children's collections would write to, and so copy, all that was imported
    gc.enable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # who serves ends with who asks
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code, module = main_module(request)
    try:
        try:
            exec(code, module.__dict__)
        finally:
            exec(request["then"], {})
        exit_status = 0
    except SystemExit as end:
        # Any other object is printed, and is a failure.
        exit_status = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
        raise
    except Exception:
        exit_status = 1
        raise
