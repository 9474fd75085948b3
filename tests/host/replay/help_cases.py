"""Calls on which each row of advice.def that can be tried is tried, with what must come of it, found by hand.

A case is known by a part of the row's sentence. `change` is the largest change of a value that was finite before.
"""
from dataclasses import dataclass, field

import torch

INF, NAN = float("inf"), float("nan")
H, BF, E4 = torch.float16, torch.bfloat16, torch.float8_e4m3fn
HOLES = {"eps": "1e-12", "gap": "1e-06", "limit": "65504", "log_limit": "88", "log2_limit": "127", "bits": "11",
         "dtype": "float16", "least": "-128", "most": "127", "integer": "int8", "integer_op": "mul",
         "upstream": "clamp", "reduction": "sum"}


@dataclass
class Case:
    row: str  # a part of its sentence
    op: str  # with its overload
    args: object
    judgement: str = "helps"
    change: float | None = None  # None: not compared
    phase: str = "forward"
    kind: str = "nan"
    results: list | None = None
    holes: dict = field(default_factory=dict)
    trains: bool = True


def t(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


def backward(row, op, args, **more):
    """Help for the backward pass of `op`: the gradient is not finite without it."""
    return Case(row, op, args, phase="backward", **more)


def lost(row, op, args, **more):
    return Case(row, op, args, kind="underflow", **more)


def copied(x, dtype):
    return {"self": x, "dtype": dtype}


EYE, ZEROS = torch.eye(2), torch.zeros(2, 2)
ONE_ROW = [t([-INF, -INF], [0., 0.]), -1, False]
ATTENTION = [torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4)]
SMALL = [t(1e-4, dtype=H), t(1e-4, dtype=H)]

CASES = [
    # Another type.
    Case("inside the compiled function", "aten::mul.Tensor", [t(300, 2, dtype=H), t(300, 3, dtype=H)], change=0),
    lost("train in bfloat16", "aten::mul.Tensor", SMALL),
    lost("keep the average in float32", "aten::lerp.Scalar", [t(1, dtype=BF), t(1.0078125, dtype=BF), 0.001]),
    lost("keep the parameters in float32", "aten::add.Tensor", [t(1, dtype=BF), t(0.001, dtype=BF)]),
    lost("compute this line in float32: `x.float()` before", "aten::mul.Tensor", SMALL),
    lost("round once at its end", "aten::mul.Tensor", SMALL),
    lost("compute this line in float64, or", "aten::mul.Tensor", [t(1e-30), t(1e-20)]),
    Case("keep float32 master weights", "aten::exp", [t(12, 0, dtype=H)], change=0, trains=False),
    Case("keep float32 master weights", "aten::log", [t(0, 1, dtype=H)], "not_tried"),
    Case("vector_norm(x, dtype=torch.float32)", "aten::linalg_vector_norm", [t(INF, 1, dtype=H)], "failed"),
    Case("`x.{op}(dim, dtype=torch.float32)`", "aten::sum.dim_IntList", [t(60000, 60000, dtype=H), [0]]),
    Case("vector_norm(x, dtype=torch.float32)", "aten::linalg_vector_norm", [t(60000, 60000, dtype=H)]),
    Case("compute this line in float32, `x.float()`", "aten::mul.Tensor", [t(300, dtype=H), t(300, dtype=H)]),
    Case("compute this line in float32, `x.float()`", "aten::mul.Tensor", [t(1e30), t(1e30)], "not_tried"),
    Case("use bfloat16, which has", "aten::mul.Tensor", [t(300, dtype=H), t(300, dtype=H)]),
    Case("run `{op}` alone", "aten::mul.Tensor", [t(1, 2), t(3, 4)], change=0, results=[t(NAN, 8)]),
    # Scales.
    lost("scale the loss: `scaler", "aten::mul.Tensor", SMALL),
    lost("scale the loss: `scaler", "aten::mul.Tensor", [t(*[1e-4] * 20, 6e-8, dtype=H)] * 2),
    lost("scale the loss: `scaler", "aten::mul.Tensor", [t(6e-8, dtype=H), t(6e-8, dtype=H)], judgement="failed"),
    lost("scale the tensor up before the cast", "aten::_to_copy", copied(t(1e-4, 5e-5), E4), holes={"limit": "448"}),
    lost("scale the tensor into the range", "aten::_to_copy", copied(t(1e-4, 5e-5), E4), holes={"limit": "448"}),
    Case("`(x * scale).to(dtype)`", "aten::_to_copy", copied(t(1000, 500), E4), holes={"limit": "448"}, trains=False),
    Case("`x.clamp(-{limit}, {limit})`", "aten::_to_copy", copied(t(1e5, 2), H), change=0),
    Case("`(q * scale) @ k`", "aten::mm", [torch.full((1, 64), 100, dtype=H), torch.full((64, 1), 20, dtype=H)]),
    Case("`(q * scale) @ k`", "aten::mm", [torch.full((1, 64), 200, dtype=H), torch.full((64, 1), 200, dtype=H)],
         "failed"),
    # A safe operand where the result is hidden.
    Case("`torch.where(ok, {op}(torch.where(ok, x, 1)), 0)`", "aten::log", [t(0, 1, 3)], change=0),
    Case("`torch.where(ok, {op}(torch.where(ok, x, 0)), 0)`", "aten::exp", [t(1000, 0)], change=0),
    Case("acosh(torch.where(ok, x, 2))", "aten::acosh", [t(0.5, 2)], change=0),
    Case("a / torch.where(ok, b, 1)", "aten::div.Tensor", [t(1, 1), t(0, 2)], change=0),
    Case("select the operands before", "aten::log", [t(0, 1)], change=0),
    # Denominators.
    Case("set `eps=1e-4` in the optimizer: the usual", "aten::addcdiv", [t(1, dtype=H), t(1, dtype=H), t(0, dtype=H)],
         trains=False),
    Case("`torch.where(norm > 0, target / norm, 1)`", "aten::div.Tensor", [t(1, 6), t(0, 2)], change=0, trains=False),
    Case("give the optimizer a positive `eps`", "aten::div.Tensor", [t(1), t(0)]),
    Case("give the optimizer a positive `eps`", "aten::div.Tensor", [t(1, dtype=H), t(0, dtype=H)], "failed"),
    Case("add `eps` inside the root: `(v", "aten::rsqrt", [t(0, 4)], change=0),
    Case("add `eps` inside the root: `(v", "aten::rsqrt", [t(0, dtype=H)], "failed"),
    Case("`v.clamp(min=0).sqrt()`", "aten::sqrt", [t(-1e-9, 4)], change=0, trains=False),
    Case("`v.clamp(min=0).sqrt()`", "aten::sqrt", [t(-1e-9, 0, 4)], "failed", change=0),
    Case("`max(count, 1)`", "aten::div.Scalar", [t(3), 0]),
    Case("`x.sum() / max(x.numel(), 1)`", "aten::mean", [torch.zeros(0)]),
    Case("divide a summed loss yourself", "aten::nll_loss_forward",
         [t([-1., -2.]), torch.tensor([-100]), None, 1, -100]),
    Case("`x.{op}(correction=0)`", "aten::var.correction", {"self": t([1.]), "dim": [1], "correction": 1}),
    Case("replace `exp` divided by its sum", "aten::div.Tensor", [t([0., 0.]), t([0.])]),
    Case("`(x - x.amax(dim, keepdim=True)).exp()`", "aten::div.Tensor", [t([0., 0.]), t([0.])]),
    Case("`F.normalize(x, dim=dim, eps={eps})`", "aten::div.Tensor", [t([0., 0.], [3., 4.]), t([0.], [5.])], change=0),
    Case("add eps to the deviation", "aten::div.Tensor", [t(0, 1), t(0, 2)], change=0),
    Case("`(x - mean) / (var + {eps}).sqrt()`", "aten::div.Tensor", [t(0, 1), t(0, 2)], change=0),
    Case("`(x - low) / (high - low)", "aten::div.Tensor", [t(0, 1), t(0, 2)], change=0),
    Case("`/ count.clamp(min=1)`", "aten::div.Tensor", [t(0, 1), t(0, 2)], change=0),
    Case("`/ count.clamp(min=1)`", "aten::div.Tensor", [t(0, 1), t(0, 0.5)], change=1),
    Case("add eps inside the root: `(x + {gap}).rsqrt()`", "aten::rsqrt", [t(0, dtype=H)], holes={"gap": "1e-03"}),
    Case("add eps inside the root: `(x + {eps}).rsqrt()`", "aten::rsqrt", [t(0)]),
    Case("keep a positive divisor away from 0", "aten::div.Tensor", [t(1, 1), t(0, 2)], change=0),
    Case("keep a positive divisor away from 0", "aten::div_.Tensor", [t(1, 1), t(0, 2)], change=0),
    Case("`torch.where(b == 0, 0, a / torch.where(b == 0, 1, b))`", "aten::div.Tensor", [t(1, 1), t(0, 2)], change=0),
    Case("`x % m.clamp(min=1)`", "aten::fmod.Tensor", [t(7, 7), t(0, 4)], change=0),
    Case("`/ b.clamp(min={eps})`, the quotient leaves", "aten::div.Tensor", [t(1), t(1e-39)]),
    Case("bound the denominator away from zero", "aten::div.Tensor", [t(1), t(0)]),
    # Operands that are replaced.
    Case("initialise the parameter where it is made: `nn", "aten::add.Tensor", [t(NAN, 1), t(1, 1)]),
    Case("allocate with `torch.zeros`", "aten::add.Tensor", [t(NAN, 1), t(1, 1)]),
    Case("drop the rows with missing values", "aten::exp", [t([NAN, 1.], [2., 3.])]),
    Case("replace missing values and tell", "aten::exp", [t(NAN, 1)], change=0),
    Case("combine the masks as booleans", "aten::add.Tensor", [t(-60000, 1, dtype=H), t(-60000, 0, dtype=H)], change=0),
    Case("give the `{upstream}` before this op", "aten::log", [t(0, 1)], change=0),
    Case("raise the lower bound or eps of this line", "aten::div.Tensor", [t(1, 1), t(0, 2)], change=0),
    Case("a row with nothing left gets equal, finite weights", "aten::_softmax", ONE_ROW, change=0),
    Case("the maximum of a row with nothing left", "aten::sub.Tensor", [t(-INF, 3), t(-INF, 1)], change=0),
    Case("`scores.masked_fill(row_is_empty, 0)`", "aten::_softmax", ONE_ROW, change=0),
    Case("`torch.where(mask, x, 0)` in place of", "aten::mul.Tensor", [t(INF, 2), t(0, 1)], change=0),
    Case("`torch.where(mask, x, 0)` in place of", "aten::mul.Tensor", [t(INF, 2), t(0, 0.5)], "not_tried"),
    Case("`v.masked_fill(~keep, 0)`", "aten::mm", [t([0., 1.]), t([INF], [2.])]),
    Case("`torch.where(x.isinf(), 0, x)`", "aten::sub.Tensor", [t(INF, 3), t(INF, 1)], change=0),
    # Domains.
    Case("replace `softmax` and `log`", "aten::log", [t([1., 0.])], change=0),
    Case("replace `softmax` and `log`", "aten::log", [t([0.7, 0.])], "not_tried"),
    Case("`F.cross_entropy(logits, target)`", "aten::log", [t([1., 0.])]),
    Case("`F.binary_cross_entropy_with_logits(logits, target)`", "aten::log", [t(0, 0.5)]),
    Case("`F.logsigmoid(x)`", "aten::log", [t(0, 0.5)], change=0),
    Case("`F.logsigmoid(x)`", "aten::log", [t(0, 1.5)], "not_tried"),
    Case("`2 * (math.log(2) - x - F.softplus(-2 * x))`", "aten::log", [t(0, 0.75)]),
    Case("drop this logarithm", "aten::log", [t(-1, -2)]),
    Case("`torch.logsumexp(x, dim)`", "aten::log", [t(0, 1)], change=0),
    Case("`torch.special.log_ndtr(x)`", "aten::log", [t(0, 0.5)]),
    Case("`torch.xlogy(p, p)`", "aten::log", [t(0, 0.5)], change=0, trains=False),
    Case("`torch.xlogy(p, p)`", "aten::log", [t(0, 0.5)], "failed", change=0),
    Case("bound the operand from below: `x.clamp(min={eps}).{op}()`", "aten::log", [t(0, 1)], change=0),
    Case("bound the operand from below: `x.clamp(min={eps}).{op}()`", "aten::log", [t(NAN, 1)], "failed"),
    Case("keep the operand away from 0", "aten::log", [t(0, 1)], change=0),
    Case("use `x.log1p()`", "aten::log", [t(0, 1)], change=0.6931472),
    Case("use `x.log1p()`", "aten::log", [t(-2, 1)], "failed"),
    Case("rounding takes a cosine past 1", "aten::acos", [t(1.0000002, 0)], change=0),
    Case("for an angle between 3-vectors", "aten::acos", [t(1.0000002, 0)], change=0),
    Case("`x.clamp(-1 + {gap}, 1 - {gap}).{op}()`", "aten::atanh", [t(1, 0)], change=0),
    Case("bound the operand: `x.clamp(min=1 + {gap}).acosh()`", "aten::acosh", [t(0.5, 2)], change=0),
    Case("bound the operand: `x.clamp(min=-1 + {gap}).log1p()`", "aten::log1p", [t(-2, 0)], change=0),
    Case("`torch.logit(x, eps={gap})`", "aten::logit", [t(1, 0.5)], change=0),
    Case("`torch.xlogy(x, y.clamp(min={eps}))`", "aten::xlogy.Tensor", [t(1, 1), t(0, 1)], change=0),
    Case("`torch.special.xlog1py(x", "aten::special_xlog1py", [t(1, 1), t(-1, 0)], change=0),
    Case("`x.float().clamp(min=1e-6)`", "aten::polygamma", [1, t(0, 1)], change=0),
    Case("`x.sign() * x.abs()", "aten::pow.Tensor_Scalar", [t(-1, 4), 0.5], change=0),
    Case("where the base should not be negative", "aten::pow.Tensor_Scalar", [t(-1, 4), 0.5], change=0),
    Case("`((x + 1) / 2).pow(p)`", "aten::pow.Tensor_Scalar", [t(-0.5, 0.5), 0.5], change=0.75**0.5 - 0.5**0.5),
    Case("keep the operand inside the domain", "aten::log", [t(0, 1)], change=0),
    # Overflow.
    Case("`F.softplus(x)`", "aten::exp", [t(100, 0)], change=0),
    Case("use `torch.softmax(x, dim)`, which", "aten::exp", [t([100., 0.])]),
    Case("`x.clamp(max={log_limit}).{op}()`", "aten::exp", [t(100, 0)], change=0),
    Case("take `F.softplus(x)` in place of `exp`", "aten::exp", [t(100, 0)], change=1 - 0.6931472),
    Case("`x.clamp(max={log2_limit}).exp2()`", "aten::exp2", [t(200, 0)], change=0),
    Case("`x.clamp(-{log_limit}, {log_limit}).{op}()`", "aten::sinh", [t(100, 0)], change=0),
    Case("`x.clamp(-bound, bound).pow(p)`", "aten::pow.Tensor_Scalar", [t(1e20, 2), 2], change=0),
    Case("bound the operand before the square", "aten::square", [t(1e20, 2)], change=0),
    Case("move the matrix away from singular", "aten::linalg_inv_ex", [ZEROS],
         results=[torch.full((2, 2), INF), torch.tensor(1)]),
    Case("sdpa_kernel", "aten::_scaled_dot_product_flash_attention_for_cpu", ATTENTION,
         results=[torch.full((1, 1, 2, 4), NAN), torch.zeros(1, 1, 2)]),
    # Derivatives.
    Case("bound what this backward divides by", "aten::div.Tensor", [t(1), t(0)], phase="backward"),
    backward("fill masked scores with", "aten::_softmax", ONE_ROW),
    backward("put eps inside the root: `(x + {eps}).sqrt()`", "aten::sqrt", [t(0, 4)], change=1e-6),
    backward("where 0 must stay 0", "aten::sqrt", [t(0, 4)], change=0),
    backward("`x.clamp(min={eps}).sqrt()`, below", "aten::sqrt", [t(0, 4)], change=1e-6),
    backward("`x.clamp(min={eps}).rsqrt()`, below", "aten::rsqrt", [t(0)]),
    backward("put eps inside the root: `(x + {gap}).rsqrt()`", "aten::rsqrt", [t(0, dtype=H)], holes={"gap": "1e-03"}),
    backward("put eps inside the root: `(x + {eps}).rsqrt()`", "aten::rsqrt", [t(0)]),
    Case("write the norm with eps inside", "aten::linalg_vector_norm", [t([0., 0.], [3., 4.]), 2, [1]], change=0,
         results=[t(NAN, 5)]),
    Case("write the deviation with eps inside", "aten::std.correction",
         {"self": t([1., 1.], [1., 3.]), "dim": [1], "correction": 1}, change=0, results=[t(NAN, 2**0.5)]),
    Case("bound the variance under the root", "aten::std.correction",
         {"self": t([1., 1.], [1., 3.]), "dim": [1], "correction": 1}, change=0, results=[t(NAN, 2**0.5)]),
    backward("keep the angle away from its ends", "aten::acos", [t(1, 0)]),
    backward("for an angle between 3-vectors", "aten::acos", [t(1, 0)], change=0),
    backward("give an angle of exactly 0 no gradient", "aten::acos", [t(1, 0)], change=0),
    backward("keep the operand above 1", "aten::acosh", [t(1)]),
    backward("`x.clamp(min={eps}).{forward_op}()`", "aten::log", [t(0)]),
    backward("`(x + {eps}).{forward_op}()`", "aten::log", [t(0)]),
    backward("bound the operand from below: `x.clamp(min=-1 + {gap}).log1p()`", "aten::log1p", [t(-1)]),
    backward("`torch.xlogy(p, q.clamp(min={eps}))`", "aten::xlogy.Tensor", [t(1), t(0)]),
    backward("take the entropy from logits", "aten::xlogy.Tensor", [t([1., 0.]), t([1., 0.])]),
    backward("keep the base above zero", "aten::pow.Tensor_Scalar", [t(0, 4), 0.5]),
    backward("`(x + {eps}).pow(p)`", "aten::pow.Tensor_Scalar", [t(0, 4), 0.5], change=1e-6),
    backward("where the power of 0 has a value", "aten::pow.Tensor_Scalar", [t(0, 4), 0.5], change=0),
    backward("`a / (b + {eps})`", "aten::div.Tensor", [t(1), t(0)]),
    backward("bound the divisor away from zero", "aten::div.Tensor", [t(1), t(0)]),
    backward("bound a divisor of either sign", "aten::div.Tensor", [t(1, 1), t(0, -2)], change=0),
    Case("give `atan2` a safe point", "aten::atan2", [t(0, 1), t(0, 1)], change=0, results=[t(NAN, 0.7853982)]),
    backward("`torch.linalg.svdvals(a)`", "aten::_linalg_svd", [EYE], change=0),
    backward("`torch.linalg.eigvalsh(a)`", "aten::_linalg_eigh", [EYE], change=0),
    backward("separate equal values", "aten::_linalg_eigh", [EYE]),
    backward("bound the operand: `x.clamp(max={log_limit}).exp()`", "aten::exp", [t(100)]),
    backward("a row of nothing else has no derivative", "aten::logsumexp", [t([-INF, -INF]), [1]]),
    backward("move the decomposed matrix", "aten::linalg_inv_ex", [ZEROS]),
    backward("where its derivative is not finite", "aten::sqrt", [t(0, 4)], change=1e-6),
    backward("where its derivative is not finite", "aten::sqrt", [t(1, 4)], judgement="not_tried"),
]
