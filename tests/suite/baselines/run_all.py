"""Runs baselines over suite programs: run_all.py [--only BASELINE,...] OUT [PROGRAM...]

Writes OUT/BASELINE/PROGRAM.json for all programs and controls, or for those named; beside it are
.out and .err with what the program printed. torch is imported once, and each run is a fork of that
process: as `driver.py BASELINE PROGRAM OUT.json`, without the time that the import takes.
"""
import argparse
import importlib
import json
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 120


def run_forked(baseline, program, out):
    """One run in a child; returns its exit status, or minus the signal that ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(LIMIT_S)
    status = 1
    try:
        for number, suffix in ((1, ".out"), (2, ".err")):
            file = open(out.with_suffix(suffix), "w")
            os.dup2(file.fileno(), number)
        import driver
        sys.argv = ["driver.py", baseline, str(program), str(out)]
        status = driver.main()
        sys.stdout.flush()
    finally:
        os._exit(status)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", type=pathlib.Path)
    parser.add_argument("--only", help="comma list of baselines")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    driver, labels = importlib.import_module("driver"), importlib.import_module("labels")
    for needed in ("watch", "torch._dynamo", "torch.nn.utils", "torch.utils.data"):
        importlib.import_module(needed)
    chosen = options.only.split(",") if options.only else driver.BASELINES
    programs = options.programs or labels.suite_programs() + labels.suite_programs("controls")
    for baseline in chosen:
        folder = options.out / baseline
        folder.mkdir(parents=True, exist_ok=True)
        start, failed = time.monotonic(), []
        for program in programs:
            out = folder / f"{program.stem}.json"
            out.unlink(missing_ok=True)
            status = run_forked(baseline, program.resolve(), out)
            error = f"exit status {status}"
            if out.exists():
                error = json.loads(out.read_text())["failed"]
            failed += [f"{program.stem}: {error}"] if error else []
        seconds = time.monotonic() - start
        print(f"{baseline}: {len(programs)} programs in {seconds:.0f} s", flush=True)
        print("".join(f"  {line}\n" for line in failed), end="", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
