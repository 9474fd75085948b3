"""Baseline: hooks on every module's forward and backward, then a scan of parameters per step."""
from torch.nn.modules.module import (register_module_forward_hook,
                                     register_module_full_backward_hook)

from watch import after_step, kinds, name_parameters, worst


def attach(run):
    """Reports the first that is not finite: a module's output, a gradient, a parameter."""
    names = name_parameters()

    def check(op, phase, values, name):
        found = set() if run.findings else kinds(values)
        if found:
            run.find(op, phase, worst(found), run.line(), module=name)

    def forward(module, args, output):
        name = type(module).__name__
        check(f"module:{name}", "forward", output, name)

    def backward(module, grad_input, grad_output):
        name = type(module).__name__
        if not kinds(grad_output):
            check(f"module:{name}", "backward", grad_input, name)
        check("gradient", "backward", grad_output, name)

    def scan(parameters):
        for value in parameters:
            name = names.get(id(value))
            check("gradient", "backward", value.grad, name)
            check("parameter", "optimizer", value, name)

    register_module_forward_hook(forward)
    register_module_full_backward_hook(backward)
    after_step(scan)
