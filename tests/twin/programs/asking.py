"""Runs a program that knows nothing of numsan, and calls the package at every step of its optimizers."""
import pathlib
import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "python"))
import numsan  # noqa: E402

steps = 0


def at_step(*_):
    global steps
    steps += 1
    with numsan.ignore():
        float(torch.zeros(2).log().sum())
    numsan.step(loss=1.0)
    try:
        numsan.check(decide=steps % 5 == 0)
    except numsan.NumericalError:
        print("nothing here is not finite")


if __name__ == "__main__":
    register_optimizer_step_post_hook(at_step)
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
    print("asked at", steps, "steps:", numsan.check(decide=True), numsan.findings())
