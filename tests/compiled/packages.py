"""A model that others made ready to be called: packages.py module|package|inference|weights [PACKAGE]

Its logarithm leaves its domain in the third call: of an exported program, of a package of AOTInductor's, of a compiled
model in inference mode, and of one whose weights alone were made in it. Prints what comes of each call, and what a mode
of the program's sees of one."""
import os
import sys
import warnings

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

    def forward(self, x, shift):
        h = torch.tanh(self.first(x)) - shift
        return self.last(h.log())  # BUG


def ready(net, how):
    if how in ("inference", "weights"):
        return torch.compile(net)
    exported = torch.export.export(net, (torch.ones(8, 4), torch.tensor(-5.0)))
    if how == "module":
        return exported.module()
    if not os.path.exists(sys.argv[2]):
        torch._inductor.aoti_compile_and_package(exported, package_path=sys.argv[2])
    return torch._inductor.aoti_load_package(sys.argv[2])


class Seen(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))


warnings.simplefilter("ignore")
torch.manual_seed(0)
with torch.inference_mode(sys.argv[1] == "weights"):
    net = Net()
call = ready(net, sys.argv[1])
with torch.inference_mode(sys.argv[1] == "inference"), torch.set_grad_enabled(sys.argv[1] != "weights"):
    for step in range(4):
        y = call(torch.randn(8, 4), torch.tensor(5.0 if step == 2 else -5.0))  # CALL
        print(f"{float((y * 2).detach().sum()):.4g}")
    if sys.argv[1] == "package":
        seen, given = [], (torch.ones(8, 4), torch.tensor(5.0))
        with Seen():
            call(*given)
        print("seen", *seen)
