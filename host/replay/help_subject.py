"""The call that a help line is for, ready to be run through autograd, and what comes of it without the help."""
from dataclasses import replace

import torch

import comparison
import op_calls
from help_code import Refused
from help_sources import Sources
from operands import Operands, Setting

# Forward ops of which autograd keeps the result alone -> an operand that gives it.
INVERSES = {
    "sqrt": lambda result: result * result, "rsqrt": lambda result: (result * result).reciprocal(),
    "exp": torch.log, "reciprocal": torch.reciprocal,
}
LOST_KINDS = ("underflow", "overflow")  # of findings without a value that is not finite


class Subject:
    """The call that help is for: the dumped op or, with `of_forward`, the forward op, of a finding in a backward pass.
    Refused where the forward op is not in the dump, or its gradient is finite here."""

    def __init__(self, replay, of_forward):
        dump = replay.dump
        self.kind = str(dump.finding.get("kind"))
        self.lost = self.kind in LOST_KINDS or not any(
            bool(comparison.is_bad(result).any()) for result in replay.reference)
        self.backward = of_forward
        if of_forward and dump.forward is None:
            raise Refused("the forward op is not in the dump")
        self.dumped = dump.forward if self.backward else dump.op
        self.operands = Operands(dump, self.dumped) if self.backward else replay.operands
        self.device, self.about = replay.device, ""
        if self.backward:
            self._restore_operand()
        self.trains = self.backward or any(argument.requires_grad and argument.dtype.is_floating_point
                                           for _, argument in self.operands.tensor_arguments())
        self.reference, self.cotangents = replay.reference, [None]
        if self.backward:
            self._find_cotangents(replay)

    def _restore_operand(self):
        """The forward operand of a result, where the program had no use for it any more."""
        name, args = op_calls.base_name(self.dumped), self.dumped.args
        results = [result for result in self.dumped.results if result.kind == "tensor"]
        if name not in INVERSES or not args or args[0].kind != "left_out" or not results:
            return
        result = self.operands.dump.tensor(results[0])
        operand = INVERSES[name](result)
        if not comparison.compare([getattr(torch, name)(operand)], [result]).close:
            return
        args[0] = replace(args[0], kind="tensor", tensor="restored", dtype=operand.dtype, sizes=tuple(operand.shape),
                          strides=(), same_as="")
        self.operands.keep("restored", operand)
        self.about = f"with an operand that {name} takes to the dumped result"

    def _leaves(self):
        positional, keywords = self.operands.make(Setting(self.device))
        for value in op_calls.tensors_of([*positional, *keywords.values()]):
            if value.dtype.is_floating_point or value.is_complex():
                value.requires_grad_()
        return positional, keywords

    def call(self, positional, keywords):
        """The op through autograd. What it writes in place is a copy, since autograd keeps the operand."""
        positional, keywords = list(positional), dict(keywords)
        for i, argument in enumerate(self.operands.operator._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            place, where = (argument.name, keywords) if argument.kwarg_only else (i, positional)
            if isinstance(where[place], torch.Tensor):
                copy = where[place].clone()
                where[place] = copy.detach() if argument.kwarg_only else copy  # out= takes no gradient
            elif isinstance(where[place], (list, tuple)):
                where[place] = [value.clone() for value in where[place]]
        return op_calls.call_operator(self.operands.operator, positional, keywords)

    def _find_cotangents(self, replay):
        """Gradients of the results by which the gradient of the operands is not finite, as in the program."""
        positional, keywords = self._leaves()
        baseline = self.call(positional, keywords)
        self.reference = [result.detach() for result in baseline]
        shape = baseline[0].shape
        given = [mean_weights(baseline[0].detach())]
        for _, argument in replay.operands.tensor_arguments()[:1]:
            values_of_it = replay.operands.values(argument)
            if values_of_it.shape == shape and values_of_it.dtype == given[0].dtype:
                given.append(values_of_it.to(self.device))
        self.cotangents = []
        for cotangent in given:
            if comparison.is_bad(cotangent).any():
                continue
            gradients, _ = gradients_of(baseline, [*positional, *keywords.values()], cotangent)
            if gradients is not None and any(bool(comparison.is_bad(g).any()) for g in gradients):
                self.cotangents.append(cotangent)
        if not self.cotangents:
            raise Refused("forward and backward of the dumped forward op give finite gradients here")

    def names(self):
        """(Sources, leaves) of operands that are made anew."""
        positional, keywords = self._leaves()
        named = dict(keywords)
        for argument, value in zip(self.operands.operator._schema.arguments, positional):
            named[argument.name] = value
        return Sources(self.dumped, positional, named, self.reference), positional, keywords


def mean_weights(output):
    """The gradient that a result has in the loss where that is its mean, as losses are."""
    return torch.full_like(output, 1 / max(output.numel(), 1))


def gradients_of(results, operands, cotangent=None):
    """(gradients of all operands that have one, "") by `cotangent` or of the mean; (None, why) where there is none."""
    leaves = [leaf for leaf in op_calls.tensors_of(operands) if leaf.requires_grad]
    outputs = [result for result in results if result.requires_grad]
    if not leaves or not outputs:
        return None, "no gradient goes through it"
    if cotangent is not None and outputs[0].shape == cotangent.shape:
        weights = [cotangent.to(outputs[0].dtype), *(mean_weights(output) for output in outputs[1:])]
    else:
        weights = [mean_weights(output) for output in outputs]
    try:
        found = torch.autograd.grad(outputs, leaves, weights, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        return None, f"no gradient: {str(error).splitlines()[0][:100]}"
    return [gradient for gradient in found if gradient is not None], ""
