"""Which dimensions of an operator's operands may be turned around without changing what it computes, and how its
results are turned back: sums then add in another order, and vector code meets every value at another place."""
import torch

import op_calls

# Operand -> the dimension that is summed over.
CONTRACTIONS = {
    "mm": {0: 1, 1: 0}, "bmm": {0: 2, 1: 1}, "addmm": {1: 1, 2: 0}, "baddbmm": {1: 2, 2: 1}, "mv": {0: 1, 1: 0},
    "addmv": {1: 1, 2: 0}, "dot": {0: 0, 1: 0}, "vdot": {0: 0, 1: 0}, "linear": {0: -1, 1: -1},
}
REDUCTIONS = ("sum", "mean", "nansum", "prod", "amax", "amin", "logsumexp", "linalg_vector_norm", "norm", "var", "std",
              "var_mean", "std_mean")
ALONG = ("_softmax", "_log_softmax", "_safe_softmax")  # as many values as before, in their order
BATCHES = ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")  # the first result has a batch


def _dimensions(call, rank):
    """The dimensions that a reduction names, all where it names none."""
    for argument in call.args:
        if argument.name in ("dim", "axis") and argument.kind == "list" and argument.value:
            return [int(item.value) for item in argument.value]
        if argument.name in ("dim", "axis") and argument.kind == "number":
            return [int(argument.value)]
    return list(range(rank))


def reversal_of(operands):
    """({place: dimensions of an operand}, {result: dimensions}), or (None, None) where no order is free."""
    call, name = operands.call, op_calls.base_name(operands.call)
    tensors = operands.tensor_arguments()
    ranks = {place: len(argument.sizes) for place, argument in tensors}
    if not any(size > 1 for _, argument in tensors for size in argument.sizes):
        return None, None
    if name in CONTRACTIONS:
        return {(i,): [dimension] for i, dimension in CONTRACTIONS[name].items()}, {}
    if name in REDUCTIONS and (0,) in ranks:
        return {(0,): _dimensions(call, ranks[(0,)])}, {}
    if name in ALONG and (0,) in ranks:
        dimensions = _dimensions(call, ranks[(0,)])
        return {(0,): dimensions}, {0: dimensions}
    if name in BATCHES and (0,) in ranks:
        return {(0,): [0]}, {0: [0]}
    if torch.Tag.pointwise in operands.operator.tags and not op_calls.is_random(operands.operator):
        return {place: list(range(rank)) for place, rank in ranks.items()}, None  # all of each result
    return None, None


def sums_up(operands):
    """Whether many values go into one, so that their order rounds differently."""
    name = op_calls.base_name(operands.call)
    return name in CONTRACTIONS or name in REDUCTIONS or name in ALONG or name in BATCHES or name == "convolution"


def turned_back(results, back):
    """Results in the order of the operands as they were dumped."""
    if back is None:
        return [result.flip(list(range(result.dim()))) for result in results]
    return [result.flip(back[i]) if i in back else result for i, result in enumerate(results)]
