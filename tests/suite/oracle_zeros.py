"""Finds results that were flushed to zero: every op is computed once more in float64."""
import torch
from torch.utils._pytree import tree_flatten, tree_map

SHARE = 0.5  # of the non-zero results that have to be lost
NARROWING = ("_to_copy", "copy_")
UPDATES = ("add_", "sub_", "lerp_", "addcdiv_", "add", "sub")


def _double(value):
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().to(torch.float64, copy=True)
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    return value.clone() if isinstance(value, torch.Tensor) else value


def reference(func, name, args, kwargs):
    """What the op would have given in float64, as a list of tensors; None where that cannot be
    said."""
    if torch.Tag.nondeterministic_seeded in func.tags or func.namespace != "aten":
        return None
    if name in NARROWING:
        source = args[1] if name == "copy_" else args[0]
        return [source.double()] if source.is_floating_point() else None
    try:
        result = func(*tree_map(_double, args), **tree_map(_double, kwargs))
    except (RuntimeError, NotImplementedError, TypeError):
        return None
    return [one for one in tree_flatten(result)[0] if isinstance(one, torch.Tensor)]


def flushed(name, outputs, exact, before):
    """Why these outputs are a loss of precision: "flushed", "absorbed", or "" where they are none.
    Why these outputs are a loss of precision: "flushed", "absorbed", or "" where they are none."""
    for output, truth in zip(outputs, exact):
        if not output.is_floating_point() or output.shape != truth.shape or not output.numel():
            continue
        nonzero = truth != 0
        if bool(nonzero.any()) and float((output == 0)[nonzero].double().mean()) >= SHARE:
            return "flushed"
        if name in UPDATES and before is not None and before.shape == output.shape:
            moved = truth != before.double()
            if bool(moved.any()) and bool((output == before)[moved].all()):
                return "absorbed"
    return ""
