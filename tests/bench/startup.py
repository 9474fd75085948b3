"""What the preloaded library adds to the start of a program that never loads torch.

usage: startup.py [path of libnumsan.so] [rounds]
Runs /bin/true with and without the library in turn and prints both medians and their difference in milliseconds.
"""
import os
import statistics
import sys
import time
from pathlib import Path

LIMIT_MS = 0.5


def start_time(environment):
    begin = time.perf_counter()
    pid = os.posix_spawn("/bin/true", ["true"], environment)
    _, status = os.waitpid(pid, 0)
    elapsed = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"/bin/true ended with status {status}")
    return elapsed * 1e3


def main():
    build = Path(os.environ.get("NUMSAN_BUILD", Path(__file__).resolve().parents[2] / "build"))
    library = Path(sys.argv[1]) if len(sys.argv) > 1 else build / "lib" / "libnumsan.so"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    if not library.exists():
        raise SystemExit(f"{library} is not there")
    bare = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    preloaded = dict(bare, LD_PRELOAD=str(library.resolve()))
    times = {"bare": [], "preload": []}
    for _ in range(rounds):
        times["bare"].append(start_time(bare))
        times["preload"].append(start_time(preloaded))
    medians = {name: statistics.median(values) for name, values in times.items()}
    added = medians["preload"] - medians["bare"]
    print(f"/bin/true: {medians['bare']:.3f} ms bare, {medians['preload']:.3f} ms preloaded, {added:+.3f} ms "
          f"(median of {rounds}, limit {LIMIT_MS} ms)")
    return 0 if added <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
