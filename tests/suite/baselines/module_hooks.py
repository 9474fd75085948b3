"""Baseline: a global forward hook that asks isfinite of every module's output.

It knows a module, not a line; the line it is credited with is the one that called the module.
"""
from torch.nn.modules.module import register_module_forward_hook

from watch import kinds, worst


def attach(run):
    """Reports the first module whose output is not finite."""
    def check(module, args, output):
        if run.findings:
            return
        found = kinds(output)
        if found:
            name = type(module).__name__
            run.find(f"module:{name}", "forward", worst(found), run.line(), module=name)

    register_module_forward_hook(check)
