"""Runs cases one after another, each in a child of one process that has imported torch.

usage: run_cases.py FOLDER FILE:FUNCTION[:whole]...

whole: the child ends as a program does, which takes longer; its report then tells all that was contaminated.

FOLDER gets results.json: by function, the exit status of its child, and if all that it returned was finite. With
numsan and report=FOLDER/report-%p.json a report becomes FUNCTION.json; with log=FOLDER/log-%p.txt what was said
becomes FUNCTION.txt. A healthy program has neither.
"""
import atexit
import gc
import importlib.util
import json
import math
import os
import pathlib
import signal
import sys
import traceback

import torch
import torch._dynamo
import torch.func
import torch.utils.checkpoint

SECONDS = 60


def numbers(value):
    """Every number in what a case returned. Reads tensors without an operator that numsan would see as their reader."""
    if isinstance(value, torch.Tensor):
        value = value.detach().tolist()
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from numbers(one)
    elif value is not None:
        yield value


def is_finite(value):
    return math.isfinite(value.real) and math.isfinite(value.imag)


def run(function, out, whole):
    """In the child, which ends here."""
    signal.alarm(SECONDS)
    status = 0
    try:
        torch.manual_seed(0)
        finite = all(map(is_finite, numbers(function())))
        out.write_text(json.dumps(finite))
    except BaseException:
        traceback.print_exc()
        status = 1
    if whole:
        sys.exit(status)
    sys.stdout.flush()
    atexit._run_exitfuncs()  # decides what is pending, while names can still be asked for
    os._exit(status)


def functions(names):
    modules = {}
    for name in names:
        file, function, *whole = name.split(":")
        if file not in modules:
            spec = importlib.util.spec_from_file_location(pathlib.Path(file).stem, file)
            modules[file] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(modules[file])
        yield function, getattr(modules[file], function), bool(whole)


def main(folder, *names):
    folder = pathlib.Path(folder)
    results = {}
    gc.freeze()  # or collections in the children would write to, and so copy, all that was imported
    for name, function, whole in functions(names):
        finite = folder / f"{name}.finite"
        with open(folder / f"{name}.out", "wb") as out:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                run(function, finite, whole)
            _, status = os.waitpid(child, 0)
        results[name] = {"status": os.waitstatus_to_exitcode(status),
                         "finite": json.loads(finite.read_text()) if finite.exists() else None}
        for left, end in ((f"report-{child}.json", "json"), (f"log-{child}.txt", "txt")):
            if (folder / left).exists():
                (folder / left).rename(folder / f"{name}.{end}")
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
