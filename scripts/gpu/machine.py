"""What the machine is: its GPU, driver, processor, and the versions of what runs on it."""
import json
import os
import pathlib
import re
import subprocess

FIELDS = ("name", "driver_version", "memory.total")


class NoGpu(Exception):
    """One line for the user."""


def gpu_of(text):
    """The first GPU of `nvidia-smi --query-gpu=... --format=csv,noheader`."""
    rows = [[cell.strip() for cell in row.split(",")] for row in text.splitlines() if row.strip()]
    if not rows or len(rows[0]) != len(FIELDS):
        raise NoGpu(f"no GPU here: nvidia-smi says {text.strip()[:200]!r}")
    return {"gpu": rows[0][0], "driver": rows[0][1], "memory": rows[0][2], "gpus": len(rows)}


def gpu():
    """Raises NoGpu."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=30)
    except FileNotFoundError:
        raise NoGpu("no GPU here: there is no nvidia-smi") from None
    except subprocess.TimeoutExpired:
        raise NoGpu("no GPU here: nvidia-smi does not answer") from None
    if done.returncode != 0:
        raise NoGpu(f"no GPU here: {(done.stdout + done.stderr).strip()[:200] or 'nvidia-smi failed'}")
    return gpu_of(done.stdout)


def processor():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"cpu": found[1].strip() if found else "unknown", "cores": os.cpu_count()}


def versions(python):
    """Of torch and Python, as `python` has them; empty where it has no torch."""
    program = ("import json, platform, torch; print(json.dumps(dict(python=platform.python_version(), "
               "torch=torch.__version__, cuda=torch.version.cuda)))")
    done = subprocess.run([python, "-c", program], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def nvcc():
    """The toolkit's release, None without one."""
    for program in ("nvcc", "/usr/local/cuda/bin/nvcc"):
        try:
            done = subprocess.run([program, "--version"], capture_output=True, text=True)
        except OSError:
            continue
        found = re.search(r"release ([\d.]+)", done.stdout)
        if found:
            return found[1]
    return None
