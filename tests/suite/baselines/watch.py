"""What the baselines share: one watched run, finiteness checks, and hooks on the training loop."""
import os
import sys

import torch
from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                   register_optimizer_step_pre_hook)
from torch.utils._pytree import tree_leaves


class Run:
    """One program under one baseline: where it stands, and what was found."""

    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.step = 0
        self.in_optimizer = False
        self.findings = []
        self.extra = {}

    def line(self):
        """Innermost line of the program on the Python stack, None outside of it."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.program:
                return frame.f_lineno
            frame = frame.f_back
        return None

    def find(self, op, phase, kind=None, line=None, severity="error", categories=(), **more):
        """Adds a finding in the shape of a report; categories are (id, confidence), best first."""
        ranked = [{"id": name, "confidence": share} for name, share in categories]
        self.findings.append({
            "severity": severity, "op": op, "phase": phase, "kind": kind, "step": self.step,
            "location": None if line is None else {"file": self.program, "line": line},
            "category": ranked[0] if ranked else {"id": "U", "confidence": 0.0},
            "alternatives": ranked[1:], **more})


def kinds(values):
    """The kinds of non-finite values, of nan, +inf and -inf, in a tensor or any nest of them."""
    found = set()
    for value in tree_leaves(values):
        if isinstance(value, float):
            value = torch.tensor(value, dtype=torch.float64)
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_meta:
            continue
        if isinstance(value, torch._subclasses.FakeTensor) or value.is_nested:
            continue
        with torch.no_grad():
            value = value.detach()
            value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
            if not value.is_floating_point() or value.numel() == 0:
                continue
            value = value.float() if value.element_size() == 1 else value
            if bool(torch.isfinite(value).all()):
                continue
            found |= {"nan"} if bool(torch.isnan(value).any()) else set()
            found |= {"+inf"} if bool((value == float("inf")).any()) else set()
            found |= {"-inf"} if bool((value == float("-inf")).any()) else set()
    return found


def worst(found):
    """One kind for a report: nan before the infinities."""
    return min(found, key=["nan", "+inf", "-inf"].index)


def count_steps(run):
    """Counts finished steps; attached last, so that a baseline sees the step's own number."""
    def before(optimizer, args, kwargs):
        run.in_optimizer = True

    def after(optimizer, args, kwargs):
        run.in_optimizer = False
        run.step += 1

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)


def after_step(check):
    """Calls check(parameters) after every optimizer step."""
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: check(
        [value for group in optimizer.param_groups for value in group["params"]]))


def around_backward(before=None, after=None):
    """Calls before(roots) and after(roots) around every backward pass; it starts from roots."""
    def wrap(function):
        def wrapped(tensors, *args, **kwargs):
            roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
            if before is not None:
                before(roots)
            result = function(tensors, *args, **kwargs)
            if after is not None:
                after(roots)
            return result
        return wrapped

    torch.autograd.backward = wrap(torch.autograd.backward)
    torch.autograd.grad = wrap(torch.autograd.grad)


def name_parameters():
    """A mapping from id of a parameter to its class and attribute, filled as modules are built."""
    names = {}

    def registered(module, name, value):
        if value is not None:
            names[id(value)] = f"{type(module).__name__}.{name}"

    torch.nn.modules.module.register_module_parameter_registration_hook(registered)
    return names
