"""`numsan replay --try`: applies each help line of a finding to the dumped operands, and says what came of it.

A line helps where every value of the result is finite and, where the program trains through the op, every value of the
gradient. Help for the backward pass runs the forward op with the help, and a backward pass through it, with gradients
that are not finite without the help. Help for values that were lost to a type must bring them closer to what float64
gives. What is neither is said to have failed, or why it was not tried.
"""
from dataclasses import dataclass, field

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import comparison
import help_rows
import op_calls
from help_code import Evaluator, Refused
from help_subject import Subject, gradients_of
from operands import Setting
from verdicts import dtype_name, largest_of, number, places

CLOSER = 0.1  # an error that is not a tenth of what it was has not been cured
ROUNDED = 64  # units of the last place: an error below that is rounding, and the finding is about a type's end
HEADROOM = 0.5  # share of the type's largest value, as the option `headroom`


@dataclass
class Judged:
    """A help line: `judgement` is helps, failed or not_tried, and `said` the sentence about it."""

    text: str
    judgement: str
    said: str
    row: int | None = None
    facts: dict = field(default_factory=dict)


@dataclass
class Outcome:
    """What came of the op with the help, or without it."""

    results: list
    gradients: list | None = None
    why_no_gradient: str = ""
    undo: object = None  # what the results are to be divided by before they are compared
    like: torch.Tensor | None = None


def values(count, what):
    return f"the {count} {what} values" if count != 1 else f"the one {what} value"


class HelpTrial:
    """Tries the help lines of a dump's finding."""

    def __init__(self, replay):
        self.replay, self.rows = replay, help_rows.HelpRows()
        self.subject = self.own = Subject(replay, False)
        self.in_backward = str(replay.dump.finding.get("phase")) == "backward" and not self.own.lost
        self.forward, self.why = None, ""
        try:
            self.forward = Subject(replay, True) if self.in_backward else None
        except (Refused, op_calls.CannotRun) as error:
            self.why = str(error)

    def judge_all(self):
        lines = self.replay.dump.finding.get("help")
        return [self.judge(line) for line in lines if isinstance(line, str)] if isinstance(lines, list) else []

    def judge(self, text):
        line = self.rows.recognise(text)
        if line.trial.role in ("no", "aside"):
            return Judged(text, "not_tried", line.trial.reason, line.row)
        if self.in_backward and self.forward is None and self.rows.of_forward(line.row):
            return Judged(text, "not_tried", self.why, line.row)
        self.subject = self.forward or self.own
        try:
            with torch.enable_grad():
                judged = self._judged(line, self._apply(line))
        except (Refused, op_calls.CannotRun) as error:
            return Judged(text, "not_tried", str(error), line.row)
        if judged.judgement == "failed" and line.trial.role == "line":  # which begins before the op, and ends after it
            why = f"the op alone in {line.trial.target} is not enough, and what is around it is not in the dump"
            return Judged(text, "not_tried", why, line.row)
        return judged

    # How a line is applied.
    def _apply(self, line):
        subject, trial = self.subject, line.trial
        sources, positional, keywords = subject.names()
        self.about = subject.about
        leaves = op_calls.tensors_of([*positional, *keywords.values()])
        if trial.role in ("types", "line"):
            outcome = self._in_type(getattr(torch, trial.target), positional, keywords)
        else:
            evaluator = Evaluator({name: sources.get(source) for name, source in trial.names.items()},
                                  self._own_op(positional, keywords))
            for name, value in line.holes.items():
                evaluator.names.setdefault(name, value)
            outcome = getattr(self, f"_{trial.role}")(line, evaluator, sources, positional, keywords)
            if trial.like:
                like = Evaluator(evaluator.names).run(trial.like)
                outcome.like = like.detach()
        if sources.preimages:
            leaves = sources.preimages
            outcome.why_no_gradient = ""
            self.about = f"with an operand that {sources.about} takes to the dumped one"
        outcome.gradients, outcome.why_no_gradient = self._gradients(outcome.results, leaves)
        return outcome

    def _own_op(self, positional, keywords):
        def call(name, arguments):
            if name.strip("_") != op_calls.base_name(self.subject.dumped).strip("_") or len(arguments) != 1:
                raise Refused(f"`{name}` is not the dumped op")
            return self.subject.call([arguments[0], *positional[1:]], keywords)[0]
        return call

    def _value(self, line, evaluator):
        """What the code of a line computes, or what stands for it."""
        assigned, code = help_rows.code_of(line)
        for span in assigned:
            evaluator.run(span if " = " in span else span.replace("=", " = "))
        if line.trial.do:
            if code and "code" in line.trial.do:
                evaluator.names["code"] = evaluator.run(code)
            return evaluator.run(line.trial.do)
        if not code:
            raise Refused("the line has no code")
        return evaluator.run(code)

    def _result(self, line, evaluator, sources, positional, keywords):
        value = self._value(line, evaluator)
        results = op_calls.tensors_of(value)
        if not results:
            raise Refused("the code computes no tensor")
        return Outcome(results, undo=evaluator.names.get("scale"))

    def _operand(self, line, evaluator, sources, positional, keywords):
        """The code's value takes the place of an operand."""
        target, changed = line.trial.target, list(positional)
        if target == "all":
            places = [i for i, value in enumerate(positional) if isinstance(value, torch.Tensor)]
        else:
            places = sources.bad_places() if target == "bads" else [sources.place(target)]
        if not places or not 0 <= places[0] < len(positional):
            raise Refused("the op has no such operand")
        for place in places:
            if target in ("all", "bads"):
                evaluator.names["x"] = positional[place]
            changed[place] = self._value(line, evaluator)
        return Outcome(self.subject.call(changed, keywords))

    def _argument(self, line, evaluator, sources, positional, keywords):
        """A setting of the call is another number, that of `do`."""
        schema = self.subject.operands.operator._schema.arguments
        name, value = line.trial.target, self._value(line, evaluator)
        names = [argument.name for argument in schema]
        if name not in names:
            raise Refused(f"the op has no argument `{name}`")
        if schema[names.index(name)].kwarg_only:
            return Outcome(self.subject.call(positional, {**keywords, name: value}))
        changed = list(positional)
        changed[names.index(name)] = value
        return Outcome(self.subject.call(changed, keywords))

    def _select(self, line, evaluator, sources, positional, keywords):
        """The op on those places alone where its result was finite."""
        chosen = sources.get("finite")
        changed = [value.expand(chosen.shape)[chosen] if isinstance(value, torch.Tensor) and value.dim() > 0 else value
                   for value in positional]
        outcome = Outcome(self.subject.call(changed, keywords))
        outcome.like = self.subject.reference[0][chosen]
        return outcome

    def _scaled(self, line, evaluator, sources, positional, keywords):
        """Operands are multiplied before the op, and the result is divided."""
        changed, place = list(positional), sources.place(line.trial.target)
        while True:
            changed[place] = self._value(line, evaluator)
            outcome = Outcome(self.subject.call(changed, keywords), undo=evaluator.names.get("scale"))
            if "loss_scale" not in line.trial.names.values() or evaluator.names["scale"] <= 1 or not any(
                    bool(comparison.is_bad(result).any()) for result in outcome.results):
                return outcome
            evaluator.names["scale"] /= 2  # as a scaler does

    def _attention(self, line, evaluator, sources, positional, keywords):
        """The kernel of matrix products, in place of the fused one."""
        named = sources.named
        mask = named.get("attn_mask", named.get("attn_bias"))
        with sdpa_kernel(SDPBackend.MATH):
            return Outcome([scaled_dot_product_attention(
                named["query"], named["key"], named["value"], attn_mask=mask, is_causal=bool(named.get("is_causal")),
                scale=named.get("scale"))])

    def _in_type(self, dtype, positional, keywords):
        def cast(value):
            if isinstance(value, torch.Tensor):
                return value.to(dtype) if value.dtype.is_floating_point else value
            if isinstance(value, (list, tuple)):
                return [cast(item) for item in value]
            return dtype if isinstance(value, torch.dtype) and value.is_floating_point else value
        return Outcome(self.subject.call([cast(value) for value in positional],
                                  {name: cast(value) for name, value in keywords.items()}))

    # What came of it.
    def _gradients(self, results, leaves):
        found, why = [], ""
        for cotangent in self.subject.cotangents or [None]:
            gradients, why = gradients_of(results, leaves, cotangent)
            if gradients is None:
                return None, why
            found += gradients
        return found, why

    def _judged(self, line, outcome):
        subject = self.subject
        bad = sum(int(comparison.is_bad(result).sum()) for result in outcome.results)
        bad_gradients = None if outcome.gradients is None else \
            sum(int(comparison.is_bad(gradient).sum()) for gradient in outcome.gradients)
        parts, helps = [], bad == 0
        parts.append("finite" if not bad else f"{bad} value{'s are' if bad > 1 else ' is'} still not finite")
        facts = {"bad_values": bad, "bad_gradients": bad_gradients}
        if bad == 0:
            said, more = self._change(outcome)
            facts.update(more)
            parts += said
            if subject.lost:
                said, cured, more = self._error(outcome)
                facts.update(more)
                parts.append(said)
                helps = cured
        if bad_gradients is None:
            parts.append(outcome.why_no_gradient)
            helps = helps and not subject.backward
        elif bad_gradients:
            parts.append(f"{bad_gradients} value{'s' if bad_gradients > 1 else ''} of the gradient "
                         f"{'are' if bad_gradients > 1 else 'is'} not finite")
            helps = helps and not subject.trains
        else:
            parts.append("gradient finite")
        if self.about:
            parts.append(self.about)
        said = ("tried: " if helps else "tried, and does not help: ") + "; ".join(parts)
        return Judged(line.text, "helps" if helps else "failed", said, line.row, facts)

    def _pairs(self, outcome):
        """[(with help, without)] of results of the same sizes; a reduced dimension of size 1 may be missing."""
        references = [outcome.like] if outcome.like is not None else self.subject.reference
        pairs = []
        for result in outcome.results:
            for i, reference in enumerate(references):
                if result.numel() == reference.numel() and result.squeeze().shape == reference.squeeze().shape:
                    undo = outcome.undo if outcome.undo is not None else 1
                    undo = undo.detach().to(torch.float64) if isinstance(undo, torch.Tensor) else undo
                    pairs.append((comparison.exact(result.reshape(reference.shape)) / undo, reference))
                    references = references[i + 1:]
                    break
        return pairs

    def _change(self, outcome):
        healthy, change = 0, 0.0
        pairs = [(a, b) for a, b in self._pairs(outcome)
                 if b.dtype.is_floating_point or b.dtype.is_complex]
        for with_help, reference in pairs:
            without = comparison.exact(reference)
            both = torch.isfinite(without)
            healthy += int(both.sum())
            distance = (with_help - without).abs()[both]
            change = max(change, float(distance.max()) if distance.numel() else 0.0)
        if not pairs:
            return ["the result has other sizes, so its values are not compared"], {}
        said = [f"{values(healthy, 'healthy')} change{'s' if healthy == 1 else ''} by at most {number(change)}"
                if healthy else "no value was healthy before"]
        wide = [result for result in outcome.results if result.dtype.is_floating_point]
        narrow = next((r.dtype for r in self.subject.reference if r.dtype.is_floating_point), None)
        if wide and narrow is not None and outcome.undo is None and largest_of(wide[0].dtype) > largest_of(narrow):
            beyond = int((comparison.exact(wide[0]).abs() > largest_of(narrow)).sum())
            if beyond:
                said.append(f"{places(beyond)} beyond {dtype_name(narrow)}'s {number(largest_of(narrow))}, to be kept "
                            f"in {dtype_name(wide[0].dtype)}")
        return said, {"healthy_values": healthy, "largest_change": change}

    def _error(self, outcome):
        """The largest error relative to float64, before and with the help: for values that a type lost."""
        try:
            exact = self.subject.operands.run(Setting(self.subject.device, dtype=torch.float64))
        except op_calls.CannotRun as error:
            raise Refused(f"float64, which lost values are compared with, does not run: {error}") from None
        before = max((relative_error(comparison.exact(a), comparison.exact(b))
                      for a, b in zip(self.subject.reference, exact) if a.shape == b.shape), default=0.0)
        pairs = self._pairs(outcome)
        after = max((relative_error(a, comparison.exact(b.reshape(reference.shape)))
                     for (a, reference), b in zip(pairs, exact) if reference.numel() == b.numel()), default=1.0)
        narrow = next((r.dtype for r in self.subject.reference if r.dtype.is_floating_point), torch.float64)
        if self.subject.kind == "overflow" and before <= ROUNDED * comparison.precision_of(narrow):
            share = max((comparison.largest([result]) / largest_of(result.dtype) for result in outcome.results
                         if result.dtype.is_floating_point), default=0.0)
            return f"the largest value is at {number(share)} of its type's range", share <= HEADROOM, {"share": share}
        facts = {"error_before": before, "error_after": after}
        zeros = flushed(((comparison.exact(a), comparison.exact(b)) for a, b in zip(self.subject.reference, exact)))
        left = flushed(((a, comparison.exact(b)) for (a, _), b in zip(pairs, exact)))
        if zeros and left <= zeros * CLOSER < zeros:
            return f"of {zeros} flushed to zero {left} stay so", True, facts
        said = f"the largest error against float64 goes from {number(before)} to {number(after)} of the value"
        return said, after <= before * CLOSER, facts


def flushed(pairs):
    """How many values are zero and not so in float64."""
    return sum(int(((a.reshape(-1) == 0) & (b.reshape(-1) != 0)).sum()) for a, b in pairs if a.numel() == b.numel())


def relative_error(values_of_it, exact):
    """Of values that are not zero in float64; 1 where one was flushed to zero, infinite where it is not finite."""
    some = (exact != 0) & torch.isfinite(exact)
    if not bool(some.any()):
        return 0.0
    return float(((values_of_it - exact).abs() / exact.abs())[some].nan_to_num(nan=float("inf")).max())

