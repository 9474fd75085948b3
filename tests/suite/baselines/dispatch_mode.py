"""Baseline: a TorchDispatchMode that scans every op, and blames the first birth.

A birth is an op whose output is bad while its inputs are not. It is the upper bound of what Python
alone can see: op, line and phase of every eager op of this process. It does not ask whether the
value ever reaches anything, so an infinity that is masked away later is blamed like any other.
"""
import re

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from watch import kinds, worst

ALLOCATORS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"}


class Scan(TorchDispatchMode):
    """Compares the kinds of values before and after each op until the first birth."""

    supports_higher_order_operators = True

    def __init__(self, run):
        super().__init__()
        self.run = run
        self.modules = 0
        self.place = re.compile(r'File "%s", line (\d+)' % re.escape(run.program))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.__name__.split(".")[0]
        if self.run.findings or name in ALLOCATORS:
            return function(*args, **kwargs)
        before = kinds((args, kwargs))
        output = function(*args, **kwargs)
        written = [args[0]] if name.endswith("_") and args else []
        born = kinds((output, written)) - before
        if born and not (before and "nan" not in born):
            self.blame(function, name, args, kwargs, born)
        return output

    def blame(self, function, name, args, kwargs, born):
        """Backward births are placed at the forward line of their node, if it is known."""
        node = torch._C._current_autograd_node()
        line, phase = self.run.line(), "forward"
        if node is not None:
            made = self.place.findall("".join(node.metadata.get("traceback_", [])))
            line, phase = int(made[-1]) if made else line, "backward"
        elif function.namespace == "c10d":
            phase = "comm"
        elif self.run.in_optimizer or not (self.modules or torch.is_grad_enabled()):
            phase = "optimizer"
        elif not (self.modules or any(v.requires_grad for v in tree_leaves((args, kwargs))
                                      if isinstance(v, torch.Tensor))):
            phase = "data"
        self.run.find(f"{function.namespace}::{name}", phase, worst(born), line)

    def entered(self, module, args):
        self.modules += 1

    def left(self, module, args, output):
        self.modules -= 1


def attach(run):
    """Keeps forward traces, for which anomaly mode is needed, without its own NaN check."""
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    scan = Scan(run)
    register_module_forward_pre_hook(scan.entered)
    register_module_forward_hook(scan.left, always_call=True)
    scan.__enter__()
