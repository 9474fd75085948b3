#!/usr/bin/env python3
"""The public suite on a device, its verdicts compared with those on the CPU: the programs unmodified, each in a child
of a process that has imported torch, numsan attached; the comparison is that of tests/device/test_verdicts.py.

usage: suite_verdicts.py [--device cuda|test] [--only 'p0*'] [--jobs N] [--options NUMSAN_OPTIONS] [--out FILE]
                         [--reports FOLDER]

Exit status 1 where a verdict differs, 77 where there is no CUDA device.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "device")]
import device_environment  # noqa: E402
import run_numsan  # noqa: E402
import test_verdicts  # noqa: E402


def chosen(device, pattern):
    """Programs and controls; of the test device those that it can run."""
    suite = run_numsan.REPO / "tests/suite"
    paths = []
    for folder in ("programs", "controls"):
        paths += test_verdicts.programs(folder) if device == "test" else sorted((suite / folder).glob("*.py"))
    return [path for path in paths if fnmatch.fnmatch(path.stem, pattern)]


def environment(device):
    # torch would ask the driver how many devices there are as it is imported, and children could not use it then.
    given = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1",
             "NUMSAN_CACHE": os.environ.get("NUMSAN_CACHE", str(run_numsan.CACHE))}
    if device == "cuda":
        given["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    if device == "test":
        given |= device_environment.of_test_device(device_environment.PRELUDE)
    return given


def run_shard(device, paths, folder, options):
    """Runs some programs one after the other; what they leave goes to `folder`. Exit statuses by name."""
    command, env = run_numsan.attached([run_numsan.PYTHON, HERE.parent / "device/run_many.py", folder, device, *paths],
                                       report=folder / "report-%p.json",
                                       options={"log": folder / "log-%p.txt", **options}, env=environment(device))
    env |= environment(device)
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"run_many.py ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads((folder / "status.json").read_text())


def run_all(device, paths, folder, jobs, options):
    """{name: (exit status, folder of its report)}."""
    shards = [(paths[at::jobs], folder / f"{device}-{at}") for at in range(min(jobs, len(paths)))]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        ended = list(pool.map(lambda shard: run_shard(device, *shard, options), shards))
    return {name: (status, shard[1]) for shard, statuses in zip(shards, ended) for name, status in statuses.items()}


def compared(cpu, device):
    """What each program's run on the device has that the CPU's has not: {name: {cpu, device}}; and how many agree."""
    different = {}
    for name, (status, folder) in cpu.items():
        there_status, there = device[name]
        verdicts = test_verdicts.verdict(folder, name), test_verdicts.verdict(there, name)
        if status != there_status or verdicts[0] != verdicts[1]:
            last = (there / f"{name}.out").read_text(errors="replace")[-300:] if there_status != status else ""
            different[name] = {"cpu": {"exit_status": status, "verdict": verdicts[0]},
                               "device": {"exit_status": there_status, "verdict": verdicts[1], "printed": last}}
    return different


def coverage(runs):
    """Sums of what the reports say they scanned and did not."""
    total = {"reports": 0, "scanned": 0, "bytes": 0, "skipped": {}, "blind_spots": {}}
    for name, (_, folder) in runs.items():
        report = run_numsan.read_report(folder / f"{name}.json")
        if report is None:
            continue
        total["reports"] += 1
        for key in ("scanned", "bytes"):
            total[key] += report["coverage"][key]
        for why, count in report["coverage"]["skipped"].items():
            total["skipped"][why] = total["skipped"].get(why, 0) + count
        for spot in report["coverage"]["blind_spots"]:
            total["blind_spots"][spot] = total["blind_spots"].get(spot, 0) + 1
    return total


def keep_reports(runs, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (_, there) in runs.items():
        if (there / f"{name}.json").exists():
            (folder / f"{name}.json").write_bytes((there / f"{name}.json").read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "test"), default="cuda")
    parser.add_argument("--only", default="*")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--options", default="", help="as NUMSAN_OPTIONS, of the runs on the device")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--reports", type=pathlib.Path)
    given = parser.parse_args()
    if given.device == "cuda" and not pathlib.Path("/dev/nvidiactl").exists():
        print("suite_verdicts: no CUDA device here")
        return 77
    paths = chosen(given.device, given.only)
    if not paths:
        parser.error(f"--only {given.only}: no program has such a name")
    options = dict(part.split("=", 1) for part in given.options.split(":") if part)
    with tempfile.TemporaryDirectory(prefix="verdicts-") as folder:
        cpu = run_all("cpu", paths, pathlib.Path(folder), given.jobs, {})
        device = run_all(given.device, paths, pathlib.Path(folder), given.jobs, options)
        different = compared(cpu, device)
        result = {"programs": len(paths), "same": len(paths) - len(different), "different": different,
                  "coverage": coverage(device)}
        if given.reports:
            keep_reports(device, given.reports)
    for name, entry in different.items():
        print(f"{name}: {json.dumps(entry)}")
    seen = result["coverage"]
    print(f"{result['same']} of {result['programs']} programs have the CPU's exit status and verdict; "
          f"{seen['scanned']} ops scanned, not looked at: {seen['skipped'] or 'nothing'}")
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if different or not result["coverage"]["scanned"] else 0


if __name__ == "__main__":
    sys.exit(main())
