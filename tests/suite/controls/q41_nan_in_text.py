"""A training log full of nan and inf, none of which ever was in a tensor."""
# label: tempts=text max_severity=none dtype=fp32 needs=
import io
import json
import math
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Log:
    """One line of JSON a step; a metric that was not measured is nan."""

    def __init__(self):
        self.stream, self.best = io.StringIO(), float("inf")

    def write(self, step, loss, accuracy=float("nan")):
        self.best = min(self.best, loss)
        ratio = math.inf if accuracy == 0 else 1.0 / accuracy
        row = {"step": step, "loss": loss, "accuracy": accuracy, "ratio": ratio, "best": self.best}
        print(json.dumps(row), file=self.stream)

    def unmeasured(self):
        rows = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return sum(math.isnan(row["accuracy"]) for row in rows)


torch.manual_seed(41)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
log = Log()
for step in range(6):
    x = torch.randn(32, 4)
    y = (x[:, 0] > x[:, 1]).long()
    x, y = x.to(DEVICE), y.to(DEVICE)
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 3 == 2:
        log.write(step, loss.item(), (logits.argmax(1) == y).float().mean().item())
    else:
        log.write(step, loss.item())
print(f"log: best {log.best:.3f}, worst case {float('-inf')}, {log.unmeasured()} x {float('nan')}")
