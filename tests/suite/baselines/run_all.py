"""Runs baselines over suite programs: run_all.py [--only BASELINE,...] OUT [PROGRAM...]

Writes OUT/BASELINE/PROGRAM.json for all programs and controls, or for those named; beside it are
.out and .err with what the program printed, and OUT/BASELINE.json with {PROGRAM: {"exit_status",
"seconds"}}. torch is imported once, and each run is a fork of that process: as `driver.py BASELINE
PROGRAM OUT.json`, without the time that the import takes.
"""
import argparse
import contextlib
import gc
import importlib
import json
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
import retries  # noqa: E402

LIMIT_S = 120


def run_forked(baseline, program, out):
    """One run in a child; returns its exit status, or minus the signal that ended it."""
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the program started and left behind
        return status
    os.setpgid(0, 0)
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
    if any("compile" in labels.read_labels(program).get("needs", "") for program in programs):
        # inductor tries what this processor can by starting programs; forks inherit the answer
        importlib.import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()
    gc.freeze()  # or collections in the forks would write to, and so copy, what was imported
    for baseline in chosen:
        folder = options.out / baseline
        folder.mkdir(parents=True, exist_ok=True)
        start, failed, ended = time.monotonic(), [], {}
        for program in programs:
            out = folder / f"{program.stem}.json"
            out.unlink(missing_ok=True)
            began = time.monotonic()
            status = run_forked(baseline, program.resolve(), out)
            if status == -signal.SIGALRM:  # a machine that is too busy; once more, then it is so
                retries.note(f"baseline {baseline} {program.stem}", f"no end within {LIMIT_S} s")
                status = run_forked(baseline, program.resolve(), out)
            ended[program.stem] = {"exit_status": status,
                                   "seconds": round(time.monotonic() - began, 3)}
            error = f"exit status {status}"
            if out.exists():
                error = json.loads(out.read_text())["failed"]
            failed += [f"{program.stem}: {error}"] if error else []
        (options.out / f"{baseline}.json").write_text(json.dumps(ended, indent=1) + "\n")
        seconds = time.monotonic() - start
        print(f"{baseline}: {len(programs)} programs in {seconds:.0f} s", flush=True)
        print("".join(f"  {line}\n" for line in failed), end="", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
