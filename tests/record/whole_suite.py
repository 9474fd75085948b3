#!/usr/bin/env python3
"""Records all programs and controls of the suite, replays them, and says where a replay makes another report.

usage: whole_suite.py [--jobs N] [--keep FOLDER] [NAME...]     NAME: part of a program's name
exit status: 0 all the same, 1 some differ, 2 there was nothing to compare

--keep leaves the recordings in FOLDER, a folder each: `numsan replay RECORDING` of another build compares its verdicts.
A forked process has a report of what it found, and no recording: how many there were is said. A program that ends by
_exit() leaves a recording without an end, which has no report to compare with.
"""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import recordings  # noqa: E402
import run_numsan  # noqa: E402

SUITE = HERE.parent / "suite"


def is_cut(folder, file, again):
    """The program ended by _exit(): its report says that it has no end, and so does the replay."""
    report = run_numsan.read_report(folder / f"report-{file.stem}.json")
    return report is not None and report["run"]["ended"] is None and "ends before the run did" in again.stderr


def compare(program, folder):
    """(name, what is wrong or None, seconds of the run, seconds of its replays, bytes, findings of processes without a
    recording) of one program."""
    folder.mkdir()
    options = {"record": folder / "%p.rec", "report": folder / "report-%p.json"}
    started = time.monotonic()
    done = run_numsan.run(program, options=options, cwd=folder, env={"DEVICE": "cpu"}, timeout=600)
    seconds = time.monotonic() - started
    files = sorted(folder.glob("*.rec"))
    replays = [recordings.replay(file) for file in files]
    size = sum(file.stat().st_size for file in files)
    wrong = [again.describe() for file, again in zip(files, replays)
             if ("no answer" in again.stdout or again.returncode != 0) and not is_cut(folder, file, again)]
    if not files:
        wrong = [done.describe()]
    unrecorded = [path for path in folder.glob("report-*.json") if not (folder / f"{path.stem[7:]}.rec").exists()]
    findings = sum(len((run_numsan.read_report(path) or {"findings": []})["findings"]) for path in unrecorded)
    return program.stem, "\n".join(wrong) or None, seconds, sum(again.seconds for again in replays), size, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    programs = sorted([*(SUITE / "programs").glob("p*.py"), *(SUITE / "controls").glob("q*.py")])
    programs = [path for path in programs if not arguments.names or any(name in path.stem for name in arguments.names)]
    if run_numsan.missing_parts() or not programs:
        print("nothing to compare: no build, or no such program", file=sys.stderr)
        return 2
    root = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="numsan-recordings-"))
    root.mkdir(parents=True, exist_ok=True)
    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(lambda program: compare(program, root / program.stem), programs):
            results.append(result)
            name, wrong, seconds, replayed, size, findings = result
            print(f"{name}: {'DIFFERS' if wrong else 'the same report'}, run {seconds:.1f} s, replay {replayed:.2f} s, "
                  f"{size / 1024:.0f} KiB" + (f", {findings} findings of forks not recorded" if findings else ""),
                  flush=True)
            if wrong:
                print(wrong, flush=True)
    differ = sum(result[1] is not None for result in results)
    print(f"{len(results) - differ} of {len(results)} the same; runs {sum(result[2] for result in results):.0f} s, "
          f"replays {sum(result[3] for result in results):.1f} s, "
          f"{sum(result[4] for result in results) / 2**20:.1f} MiB, "
          f"{sum(result[5] for result in results)} findings of forks not recorded")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
