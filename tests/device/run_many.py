"""Runs programs one after another, each in a child of one process that has imported torch: many take little time.

usage: run_many.py FOLDER DEVICE PROGRAM...     DEVICE: cpu, or test for the test device

FOLDER gets NAME.out (stdout and stderr), and status.json: exit statuses by name. With numsan attached and the report
going to FOLDER/report-%p.json, a program's report becomes NAME.json; a healthy one has none.
"""
import atexit
import gc
import json
import os
import pathlib
import sys
import traceback
import types

import torch
import torch._dynamo

SECONDS = 120


def run(program, device):
    """In the child; does not return."""
    import signal
    signal.alarm(SECONDS)
    status = 0
    try:
        if device == "test":
            import fakegpu
            device = fakegpu.NAME
        os.environ["DEVICE"] = device
        sys.argv = [str(program)]
        sys.path.insert(0, str(program.parent))
        module = types.ModuleType("__main__")
        module.__file__ = str(program)
        sys.modules["__main__"] = module
        exec(compile(program.read_text(), str(program), "exec"), module.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    atexit._run_exitfuncs()  # a forked child has no other end at which names can still be asked for
    sys.stdout.flush()
    os._exit(status)


def main(folder, device, *programs):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    statuses = {}
    gc.freeze()  # or collections in the children would write to, and so copy, all that was imported
    for program in map(pathlib.Path, programs):
        with open(folder / f"{program.stem}.out", "wb") as out:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                run(program.resolve(), device)
            _, status = os.waitpid(child, 0)
        statuses[program.stem] = os.waitstatus_to_exitcode(status)
        report = folder / f"report-{child}.json"
        if report.exists():
            report.rename(folder / f"{program.stem}.json")
    (folder / "status.json").write_text(json.dumps(statuses))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
