"""Stands in for Slurm: called with `sbatch` or `srun` and their arguments. `sbatch` reads a script's directives and
runs it, `srun` starts the tasks of the job, each with the variables that Slurm sets."""
import os
import re
import subprocess
import sys
from pathlib import Path


def sbatch(arguments):
    script = Path(next(argument for argument in arguments if not argument.startswith("-")))
    text = script.read_text()
    directives = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", text, re.M))
    if set(re.findall(r"^#SBATCH.*$", text, re.M)) != {f"#SBATCH --{key}={value}" for key, value in directives.items()}:
        sys.exit(f"sbatch: {script}: a directive is not --name=value")
    if not re.fullmatch(r"\d\d:\d\d:\d\d", directives["time"]):
        sys.exit(f"sbatch: {script}: bad time {directives['time']}")
    subprocess.run(["bash", "-n", script], check=True)
    job = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": directives.get("ntasks", "1"), "SLURM_SUBMIT_DIR": os.getcwd()}
    print("Submitted batch job 7", flush=True)
    return subprocess.run(["bash", script], env={**os.environ, **job}).returncode


def srun(arguments):
    command = list(arguments)
    while command[0].startswith("-"):
        command.pop(0)
    count = os.environ["SLURM_NTASKS"]
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": count}
    numbers = [{"SLURM_PROCID": str(task), "SLURM_LOCALID": str(task)} for task in range(int(count))]
    tasks = [subprocess.Popen(command, env={**os.environ, **step, **number}) for number in numbers]
    return max(task.wait() for task in tasks)


if __name__ == "__main__":
    sys.exit({"sbatch": sbatch, "srun": srun}[sys.argv[1]](sys.argv[2:]))
