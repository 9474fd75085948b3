"""Baseline: frames of the magnitudes of weights, inputs and outputs, for each module of a model.

In the style of the underflow and overflow debuggers of model libraries: it watches one model, the
first module with parameters that is called, and keeps the last frames when something is not finite.
"""
from collections import deque

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils._pytree import tree_leaves

from watch import kinds, worst

FRAMES_KEPT = 21


def magnitudes(value):
    """Smallest and largest absolute value, as such a debugger prints them."""
    size = value.detach().abs().float()
    return [size.min().item(), size.max().item()]


def attach(run):
    """Waits for the first call of a model, then hooks each of its modules."""
    recent = deque(maxlen=FRAMES_KEPT)
    watched = []

    def frame_of(module, name, args, output):
        parts = [(f"weight {n}", v) for n, v in module.named_parameters(recurse=False)]
        parts += [(f"input[{i}]", v) for i, v in enumerate(tree_leaves(args))]
        parts += [(f"output[{i}]", v) for i, v in enumerate(tree_leaves(output))]
        lines, bad = {}, set()
        for label, value in parts:
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
                lines[label] = magnitudes(value)
                bad |= kinds(value)
        recent.append({"module": name, "type": type(module).__name__, "values": lines})
        return bad

    def watch(module, name):
        def check(module, args, output):
            if run.findings:
                return
            bad = frame_of(module, name, args, output)
            if bad:
                run.find(f"module:{type(module).__name__}", "forward", worst(bad), run.line(),
                         module=name or type(module).__name__, frames=list(recent))
        module.register_forward_hook(check)

    def first_call(module, args):
        if not watched and next(module.parameters(), None) is not None:
            watched.append(module)
            for name, child in module.named_modules():
                watch(child, name)

    register_module_forward_pre_hook(first_call)
