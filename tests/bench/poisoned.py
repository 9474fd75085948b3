"""What a run that has gone bad costs, against a healthy run that is watched as well.

usage: poisoned.py [parameters] [turns]        20,000 parameters and 3 turns where nothing is said
Trains as many small parameters one by one for 30 steps; the loss of one of two runs is NaN from step 10 on, and so is
every gradient and parameter. Prints the median step after that of both, in milliseconds, and the ratio in each turn.
"""
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 1.25
LOOP = """
import sys, time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
parameters = [torch.nn.Parameter(torch.randn(4)) for _ in range(int(sys.argv[1]))]
optimizer = torch.optim.SGD(parameters, lr=1e-3, foreach=False)
times = []
for step in range(30):
    begin = time.perf_counter()
    x = torch.cat(parameters)
    if sys.argv[2] == "bad" and step == 10:
        x = torch.sqrt(x - 100)
    loss = x.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append((time.perf_counter() - begin) * 1e3)
print(sorted(times[14:])[8])
"""


def run(count, kind, library, folder):
    environment = dict(os.environ, LD_PRELOAD=str(library), NUMSAN_OPTIONS="report=none")
    done = subprocess.run([os.environ.get("NUMSAN_PYTHON", sys.executable), "-c", LOOP, str(count), kind],
                          env=environment, cwd=folder, capture_output=True, text=True, check=True)
    assert ("first NaN" in done.stderr) == (kind == "bad"), done.stderr
    return float(done.stdout)


def main():
    build = Path(os.environ.get("NUMSAN_BUILD", Path(__file__).resolve().parents[2] / "build"))
    library = (build / "lib" / "libnumsan.so").resolve()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(run(count, "good", library, folder), run(count, "bad", library, folder)) for _ in range(turns)]
    ratios = [bad / good for good, bad in pairs]
    print(f"{count:,} parameters, healthy {'/'.join(f'{good:.0f}' for good, _ in pairs)} ms a step, "
          f"bad {'/'.join(f'{bad:.0f}' for _, bad in pairs)} ms: {'/'.join(f'{one:.2f}' for one in ratios)} times "
          f"(limit {LIMIT})")
    return 0 if statistics.median(ratios) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
