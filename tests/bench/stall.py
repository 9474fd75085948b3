"""How long a finding stops the program, by how many objects it has.

usage: stall.py [objects ...]        0 and 5,000,000 where nothing is said
Runs a small training loop whose forward pass makes a NaN in one step, with so many lists alive besides, and prints the
length of that step, of the one after it, and of the median step, in milliseconds.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_MS = 100
ROUNDS = 3
LOOP = """
import json, sys, time, torch
from torch import nn
torch.manual_seed(0)
kept = [[i] for i in range(int(sys.argv[1]))]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 1)
    def forward(self, x, bad):
        h = torch.relu(self.a(x))
        return self.b(torch.log(h - 1) if bad else h)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x, times = torch.randn(32, 64), []
for step in range(60):
    begin = time.perf_counter()
    loss = net(x, step == 40).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append((time.perf_counter() - begin) * 1e3)
print(json.dumps({"median": sorted(times)[30], "with": times[40], "after": times[41]}))
"""


def run(objects, library, folder):
    environment = dict(os.environ, LD_PRELOAD=str(library), OMP_NUM_THREADS="1")
    done = subprocess.run([os.environ.get("NUMSAN_PYTHON", sys.executable), "-c", LOOP, str(objects)], env=environment,
                          cwd=folder, capture_output=True, text=True, check=True)
    assert "first NaN" in done.stderr, done.stderr
    return json.loads(done.stdout)


def main():
    build = Path(os.environ.get("NUMSAN_BUILD", Path(__file__).resolve().parents[2] / "build"))
    library = (build / "lib" / "libnumsan.so").resolve()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for objects in [int(one) for one in sys.argv[1:]] or [0, 5_000_000]:
            rounds = [run(objects, library, folder) for _ in range(ROUNDS)]
            worst = max([worst, *(one["with"] for one in rounds)])
            columns = ["/".join(f"{one[name]:.1f}" for one in rounds) for name in ("with", "after", "median")]
            print(f"{objects:>9,} more lists: with the finding {columns[0]} ms, after it {columns[1]}, "
                  f"median {columns[2]}")
    print(f"worst {worst:.1f} ms (limit {LIMIT_MS} ms)")
    return 0 if worst <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
