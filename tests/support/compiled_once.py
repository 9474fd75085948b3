"""What tests compile themselves, once for all workers."""
import fcntl
import os
import subprocess


def compiled_once(source, target, command):
    """The target, compiled from the source unless it is newer; by one process at a time, and never seen half written.

    command(output) is the compiler's argument list that writes to output."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            partial = target.with_suffix(f".{os.getpid()}")
            subprocess.run(command(partial), check=True, timeout=400)
            partial.replace(target)
    return target
