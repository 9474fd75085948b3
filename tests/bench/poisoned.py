"""What a run that has gone bad costs, against a healthy run that is watched as well.

usage: poisoned.py [parameters] [turns] [steps] [sgd|adam]      20,000, 3, 30 and sgd where nothing is said
Trains as many small parameters one by one; the loss of one of two runs is NaN from step 10 on, and so is every gradient
and parameter. Prints the median step after the one that follows and the sum of all steps of both, in milliseconds of
the processor's time, of which other programs on the machine take less than of the clock's, and the ratios in each turn.
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
if sys.argv[4] == "sgd":
    optimizer = torch.optim.SGD(parameters, lr=1e-3, foreach=False)
else:
    optimizer = torch.optim.Adam(parameters, lr=1e-4, foreach=False)
times = []
for step in range(int(sys.argv[3])):
    begin = time.process_time()
    x = torch.cat(parameters)
    if sys.argv[2] == "bad" and step == 10:
        x = torch.sqrt(x - 100)
    loss = x.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append((time.process_time() - begin) * 1e3)
later = sorted(times[14:])
print(later[len(later) // 2], sum(times))
"""


def run(kind, count, steps, optimizer, library, folder):
    """The median step after the NaN and the sum of all."""
    environment = dict(os.environ, LD_PRELOAD=str(library), NUMSAN_OPTIONS="report=none")
    command = [os.environ.get("NUMSAN_PYTHON", sys.executable), "-c", LOOP, str(count), kind, str(steps), optimizer]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    assert ("first NaN" in done.stderr) == (kind == "bad"), done.stderr
    return [float(number) for number in done.stdout.split()]


def main():
    build = Path(os.environ.get("NUMSAN_BUILD", Path(__file__).resolve().parents[2] / "build"))
    library = (build / "lib" / "libnumsan.so").resolve()
    given = sys.argv[1:] + ["20000", "3", "30", "sgd"][len(sys.argv) - 1:]
    count, turns, steps, optimizer = int(given[0]), int(given[1]), int(given[2]), given[3]
    with tempfile.TemporaryDirectory() as folder:
        pairs = [[run(kind, count, steps, optimizer, library, folder) for kind in ("good", "bad")]
                 for _ in range(turns)]
    print(f"{count:,} parameters, {optimizer}, {steps} steps, limit {LIMIT}")
    for what, at in (("a step after the NaN", 0), ("all steps", 1)):
        ratios = [bad[at] / good[at] for good, bad in pairs]
        print(f"{what}: healthy {'/'.join(f'{good[at]:.0f}' for good, _ in pairs)} ms, "
              f"bad {'/'.join(f'{bad[at]:.0f}' for _, bad in pairs)} ms: {'/'.join(f'{one:.2f}' for one in ratios)}")
    return 0 if statistics.median(bad[0] / good[0] for good, bad in pairs) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
