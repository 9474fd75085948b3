"""The faults that the study seeds: numsan's code for each, None where it has none, and the places that may be named.

A place is a name that a table of faults/ gives to lines of its program; the lines that the fault changed may be named,
too.
"""
from typing import NamedTuple


class Kind(NamedTuple):
    code: str | None
    places: tuple
    meaning: str


KINDS = {
    "missing-zero-grad": Kind("ND101", ("backward", "step"), "gradients are never cleared"),
    "double-activation": Kind("ND102", ("loss",), "a softmax or a sigmoid before a loss that has its own"),
    "missing-log-softmax": Kind("ND103", ("loss",), "nll_loss of logits or of probabilities"),
    "wrong-parameters": Kind("ND104", ("step",), "the optimizer holds another model's parameters"),
    "dead-layer": Kind("ND105", ("hidden",), "a rectifier that is never above zero"),
    "vanishing-gradient": Kind("ND106", ("hidden",), "a tower of sigmoids"),
    "rate-too-large": Kind("ND107", ("step",), "a learning rate that is too large"),
    "rate-too-small": Kind("ND108", ("step",), "a learning rate that is too small, or falls to nothing"),
    "saturated-layer": Kind("ND109", ("hidden",), "a sigmoid or a tanh that is flat at its inputs"),
    "gradients-cleared": Kind("ND111", ("step",), "gradients are cleared between backward() and step()"),
    "missing-step": Kind("ND110", ("backward",), "step() is not called"),
    "ascending-loss": Kind("ND115", ("backward", "loss"), "the loss has the wrong sign"),
    "frozen-layers": Kind("ND113", ("step",), "most parameters need no gradient"),
    "detached-graph": Kind("ND114", (), "the graph is cut before the layers that should learn"),
    "partial-optimizer": Kind("ND112", ("step",), "the optimizer holds a small part of the model"),
    "zero-weights": Kind("ND117", (), "weights start at zero"),
    "large-weights": Kind("ND118", (), "weights start too large"),
    "small-weights": Kind("ND119", (), "weights start too small"),
    "unscaled-inputs": Kind("ND122", (), "inputs or targets in the hundreds"),
    "constant-labels": Kind("ND116", ("loss",), "all labels are the same"),
    "shuffled-labels": Kind("ND123", ("loss",), "labels are those of other rows"),
    "regression-on-classes": Kind("ND125", ("loss",), "numbers of classes are fitted as amounts"),
    "missing-nonlinearity": Kind("ND126", (), "layers without an activation between them"),
    "strong-regularisation": Kind("ND120", ("step",), "weight decay or dropout leaves nothing to learn"),
    "exploding-gradient": Kind(None, (), "gradients grow from layer to layer"),
    "wrong-mode": Kind(None, (), "train() and eval() are mistaken"),
    "batch-size": Kind("ND124", (), "a batch of one or two"),
    "wrong-dimension": Kind("ND121", ("loss",), "a softmax or a mean over the wrong dimension"),
}
