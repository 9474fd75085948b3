#!/usr/bin/env python3
"""The CUDA programs of tests/programs_cuda, built before, bare and with numsan: healthy ones are met with silence, of
the others numsan names the launch or the call that made the first bad value; output and exit status stay.

usage: nvcc_programs.py [--device cuda|test] [--built FOLDER] [--options NUMSAN_OPTIONS] [--jobs N] [--out FILE]
                        [--reports FOLDER]

--out is written as each program ends, so that it says what is known where time runs out.
Exit status 1 where something differs, 77 where there is no CUDA device. NUMSAN_BUILD names the build of numsan's.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import sysconfig
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "programs_cuda")]
import cuda_cases  # noqa: E402
import run_numsan  # noqa: E402
from cuda_programs import FAKES  # noqa: E402

NO_GPU = 77


def libraries():
    """Folders of the CUDA run-time library, cuBLAS and CUPTI: those that torch brings, or a toolkit's."""
    installed = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    folders = [*installed.glob("*/lib"), pathlib.Path("/usr/local/cuda/lib64"),
               pathlib.Path("/usr/local/cuda/extras/CUPTI/lib64")]
    return [str(folder) for folder in folders if folder.is_dir()]


def environment(device, built, program):
    if device == "test":
        return {"LD_LIBRARY_PATH": str(FAKES), "FAKE_CUDA": f"kernels={built / program}_kernels.so"}
    # An empty entry would be the current folder.
    folders = [*libraries(), *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    return {"LD_LIBRARY_PATH": ":".join(folders),
            "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}


def differs(case, program, argument, env, built, options, report):
    """What is not as it should be of one run; empty: nothing. `case`: None for a healthy program."""
    command = [str(built / program), argument]
    bare = run_numsan.run_plain_command(command, cwd=report.parent, env=env)
    options = {"raw": "1", "report": report, **options}
    done = run_numsan.run_command(command, options=options, cwd=report.parent, env=env)
    if (bare.returncode, bare.stdout) != (done.returncode, done.stdout):
        return f"bare it ended with {bare.returncode}, watched with {done.returncode}, or it printed something else"
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr.strip()[-200:]}"
    if not report.exists():
        return f"no report {done.stderr.strip()[-200:]}".strip()
    told = json.loads(report.read_text())
    if case is not None:
        return case.differs(told, numbered=False)
    if told["findings"] or done.stderr:
        return f"{len(told['findings'])} findings in a healthy program: {done.stderr.strip()[:200]}"
    return "" if told["coverage"]["scanned"] > 0 else "nothing was looked at"


def write(out, answers):
    """All of it or nothing, whenever this process is killed."""
    if out:
        beside = out.with_name(f"{out.name}.new")
        beside.write_text(json.dumps(answers, indent=1))
        beside.replace(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", choices=("cuda", "test"), default="cuda")
    parser.add_argument("--built", type=pathlib.Path, default=run_numsan.BUILD / "programs_cuda")
    parser.add_argument("--options", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--reports", type=pathlib.Path)
    chosen = parser.parse_args()
    if chosen.device == "cuda" and not pathlib.Path("/dev/nvidiactl").exists():
        print("no CUDA device here")
        return NO_GPU
    options = dict(one.split("=", 1) for one in chosen.options.split(":") if one)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.reports or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = [(f"{program}-healthy", None, program, argument)
                for program, argument in cuda_cases.HEALTHY.items()]
        runs += [(f"{name}-bug", case, case.program, case.argument) for name, case in cuda_cases.CASES.items()]
        answers = {name: {"differs": "has not ended"} for name, *_ in runs}
        write(chosen.out, answers)
        one_at_a_time = threading.Lock()

        def answer(name, case, program, argument):
            said = "not built" if not (chosen.built / program).exists() else differs(
                case, program, argument, environment(chosen.device, chosen.built, program), chosen.built, options,
                folder.resolve() / f"{name}.json")
            with one_at_a_time:
                answers[name] = {"differs": said}
                write(chosen.out, answers)
                print(f"{name}: {said or 'as it should be'}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as workers:
            for _ in workers.map(lambda one: answer(*one), runs):
                pass  # an error is raised here
    return 1 if any(one["differs"] for one in answers.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
