"""What the names in help lines stand for: operands of the dumped call, its settings and, where help is about what came
before the operator, values that the operators before it take to the dumped operands (a preimage).
"""
import math

import torch

import comparison
import op_calls
from help_code import Refused

NUMERATORS = {"div": 0, "true_divide": 0, "divide": 0, "addcdiv": 1}
DIVISORS = {"div": 1, "true_divide": 1, "divide": 1, "addcdiv": 2, "reciprocal": 0, "rsqrt": 0, "sqrt": 0, "pow": 0,
            "fmod": 1, "remainder": 1}
GUARDED = {"xlogy": 1, "special_xlog1py": 1, "polygamma": 1, **DIVISORS}  # the operand whose range is the trouble
FAR = 200.0  # exp of -FAR is zero, sigmoid of FAR is 1, in all types


def _tensor(value):
    if not isinstance(value, torch.Tensor):
        raise Refused("an operand is not in the dump")
    return value


class Sources:
    """Values by the names of the trials of advice.def. `arguments`: values of the call by place, `named` by name;
    `reference`: what the program got; `preimages`: those that were made."""

    def __init__(self, call, arguments, named, reference):
        self.call, self.name = call, op_calls.base_name(call)
        self.arguments, self.named, self.reference = arguments, named, reference
        self.preimages = []
        self.about = ""  # which op takes the preimage to the operand

    def get(self, source):
        if source.lstrip("-").isdigit():
            place = int(source)
            if not 0 <= place < len(self.arguments) or self.arguments[place] is None:
                raise Refused(f"the op has no operand {place}")
            return self.arguments[place]
        handler = getattr(self, f"_{source}", None)
        if handler is None:
            raise Refused(f"no source `{source}`")
        return handler()

    def place(self, source):
        """The place of an operand that help changes."""
        if source.isdigit():
            return int(source)
        if source in ("divisor", "guarded"):
            return {"divisor": DIVISORS, "guarded": GUARDED}[source].get(self.name, 1 if source == "divisor" else 0)
        if source in ("bad", "other"):
            bad = self.bad_places()
            tensors = [i for i, value in enumerate(self.arguments) if isinstance(value, torch.Tensor)]
            if len(bad) != 1:
                raise Refused(f"{len(bad)} operands have values that are not finite, this is for one")
            others = [i for i in tensors if i not in bad]
            if source == "bad":
                return bad[0]
            if len(others) != 1:
                raise Refused(f"the op has {len(others)} other operands, this is for one")
            return others[0]
        raise Refused(f"no operand `{source}`")

    def bad_places(self):
        """The places of operands that have a value that is not finite."""
        return [i for i, value in enumerate(self.arguments)
                if isinstance(value, torch.Tensor) and bool(comparison.is_bad(value).any())]

    # What operands are called.
    def _numerator(self):
        if self.name in ("reciprocal", "rsqrt"):
            return torch.ones_like(_tensor(self.arguments[0]))
        return self.get(str(NUMERATORS.get(self.name, 0)))

    def _divisor(self):
        return self.arguments[self.place("divisor")]

    def _guarded(self):
        return self.arguments[self.place("guarded")]

    def _bad(self):
        return self.arguments[self.place("bad")]

    def _kept(self):
        return torch.isfinite(self._bad())

    def _mask(self):
        """The factor beside the operand that is not finite, as what it says."""
        factor = _tensor(self.arguments[self.place("other")])
        if not bool(((factor == 0) | (factor == 1)).all()):
            raise Refused("the other factor is no mask of 0 and 1")
        return factor.bool()

    def _result_typed(self):
        """Operand 0 in the type of the result."""
        return _tensor(self.arguments[0]).to(self.reference[0].dtype)

    def _result_dtype(self):
        return self.reference[0].dtype

    def _finite(self):
        """Where the op's result was finite."""
        return ~comparison.is_bad(self.reference[0]).to(self.reference[0].device)

    def _empty_rows(self):
        x = _tensor(self.arguments[0])
        return x.isneginf().all(dim=self._dim(), keepdim=True)

    # Settings of the call.
    def _dim(self):
        for name in ("dim", "axis"):
            value = self.named.get(name)
            if isinstance(value, int) or (isinstance(value, (list, tuple)) and len(value) > 0):
                return value
        return tuple(range(_tensor(self.arguments[0]).dim()))

    def _last(self):
        return -1

    def _loss_scale(self):
        """Where torch.amp.GradScaler begins."""
        return 2.0**16

    def _ignore_index(self):
        return self.named.get("ignore_index", -100)

    def _divisor_dim(self):
        """Where the divisor was reduced: of size 1, or expanded, and the numerator is not."""
        a, b = _tensor(self._numerator()), _tensor(self._divisor())
        found = []
        for dimension in range(1, a.dim() + 1):
            size = b.shape[-dimension] if dimension <= b.dim() else 1
            expanded = dimension <= b.dim() and b.stride(-dimension) == 0
            if a.shape[-dimension] > 1 and (size == 1 or expanded):
                found.append(a.dim() - dimension)
        if not found:
            raise Refused("along which dimension the divisor was summed is not in the dump")
        return found[0] if len(found) == 1 else tuple(sorted(found))

    def _width(self):
        return _tensor(self.arguments[0]).shape[-1]

    def _pow_bound(self):
        exponent = self.arguments[1]
        exponent = float(exponent.abs().max()) if isinstance(exponent, torch.Tensor) else abs(float(exponent))
        return self._largest() ** (1 / exponent) * (1 - 1e-3)

    def _square_bound(self):
        return math.sqrt(self._largest()) * (1 - 1e-3)

    def _largest(self):
        return torch.finfo(self.reference[0].dtype).max

    def _product_scale(self):
        """What attention multiplies scores by: 1 / sqrt(width)."""
        left = [value for value in self.arguments if isinstance(value, torch.Tensor)][-2]
        return 1 / math.sqrt(left.shape[-1])

    def _left(self):
        return [value for value in self.arguments if isinstance(value, torch.Tensor)][-2]

    def _right(self):
        return [value for value in self.arguments if isinstance(value, torch.Tensor)][-1]

    # Norms: what is squared and summed, and along what.
    def _normed(self):
        x = _tensor(self.arguments[0])
        if self.name in ("cdist", "_cdist_forward", "_euclidean_dist"):
            return x.unsqueeze(-2) - _tensor(self.arguments[1]).unsqueeze(-3)
        return x - _tensor(self.arguments[1]) if self.name == "dist" else x

    def _normed_dim(self):
        if self.name in ("cdist", "_cdist_forward", "_euclidean_dist"):
            return -1
        return self._dim() if self.name != "dist" else tuple(range(_tensor(self.arguments[0]).dim()))

    # Preimages. Each is checked to come back to the operand, within rounding, by the op that it is made for.
    def _preimage(self, x, back, what):
        x = x.detach().requires_grad_()
        operand = _tensor(self.arguments[0]).detach()
        again = back(x.detach())
        slack = 64 * comparison.precision_of(operand.dtype)
        if not bool(((again - operand).abs() <= slack * operand.abs().clamp(min=1)).all()):
            raise Refused(f"the operand is not what {what} gives")
        self.preimages.append(x)
        self.about = what
        return x

    def _softmax_dim(self):
        p = _tensor(self.arguments[0])
        slack = 64 * comparison.precision_of(p.dtype)
        for dimension in reversed(range(p.dim())):
            if p.shape[dimension] > 1 and bool(((p.sum(dimension) - 1).abs() < slack).all()):
                return dimension
        raise Refused("the operand sums to 1 along no dimension")

    def _logits(self):
        if self.preimages:
            return self.preimages[0]
        p, dimension = _tensor(self.arguments[0]).detach(), self._softmax_dim()
        x = torch.where(p > 0, p.clamp(min=torch.finfo(p.dtype).tiny).log(), torch.full_like(p, -FAR))
        return self._preimage(x, lambda logits: torch.softmax(logits, dimension), "softmax")

    def _probabilities(self):
        return torch.softmax(self._logits(), self._softmax_dim())

    def _class_logits(self):
        return self._logits().movedim(self._softmax_dim(), 1 if self._logits().dim() > 1 else 0)

    def _least_likely(self):
        return _tensor(self.arguments[0]).detach().argmin(self._softmax_dim())

    def _before_sigmoid(self):
        p = _tensor(self.arguments[0]).detach()
        back = torch.sigmoid
        if self.name == "log1p":
            p, back = -p, lambda x: -torch.sigmoid(x)
        far = torch.where(p < 0.5, -torch.full_like(p, FAR), torch.full_like(p, FAR))
        inner = (p > 0) & (p < 1)
        x = torch.where(inner, torch.logit(torch.where(inner, p, torch.full_like(p, 0.5))), far)
        return self._preimage(x, back, "sigmoid")

    def _label(self):
        """The target that is furthest from the prediction."""
        return (self._before_sigmoid().detach() < 0).to(_tensor(self.arguments[0]).dtype)

    def _before_tanh_square(self):
        operand = _tensor(self.arguments[0]).detach()
        left = operand + 1 if self.name == "log1p" else operand
        root = (1 - left).clamp(min=0).sqrt()
        x = torch.where(root < 1, torch.atanh(torch.where(root < 1, root, torch.zeros_like(root))),
                        torch.full_like(root, 20.0))
        back = (lambda v: -torch.tanh(v)**2) if self.name == "log1p" else (lambda v: 1 - torch.tanh(v)**2)
        return self._preimage(x, back, "1 - tanh(x)**2")

    def _one_exponent(self):
        """One exponent a sum: the other ones would only add to it."""
        total = _tensor(self.arguments[0]).detach()
        x = torch.where(total > 0, total.clamp(min=torch.finfo(total.dtype).tiny).log(), torch.full_like(total, -FAR))
        self._preimage(x, torch.exp, "a sum of exp")
        return self.preimages[-1].unsqueeze(-1)

    def _exponents(self):
        """Of the numerator."""
        e = _tensor(self._numerator()).detach()
        if bool((e < 0).any()):
            raise Refused("the numerator is not what exp gives")
        x = torch.where(e > 0, e.clamp(min=torch.finfo(e.dtype).tiny).log(), torch.full_like(e, -FAR))
        x = torch.where(e.isinf(), torch.full_like(e, FAR), x).requires_grad_()
        self.preimages.append(x)
        self.about = "exp"
        return x

    def _unit_vector(self):
        """One of two vectors whose cosine is the operand; rounding takes a cosine past 1, but no angle."""
        cosine = _tensor(self.arguments[0]).detach()
        a = torch.zeros((*cosine.shape, 3), dtype=cosine.dtype, device=cosine.device)
        a[..., 0] = 1
        return a

    def _turned_vector(self):
        cosine = _tensor(self.arguments[0]).detach().clamp(-1, 1)
        b = torch.stack([cosine, (1 - cosine * cosine).sqrt(), torch.zeros_like(cosine)], -1)
        return self._preimage(b, lambda vectors: vectors[..., 0], "the cosine of two vectors")

    def _before_normal(self):
        p = _tensor(self.arguments[0]).detach()
        inner = (p > 0) & (p < 1)
        x = torch.where(inner, torch.special.ndtri(torch.where(inner, p, torch.full_like(p, 0.5))),
                        torch.where(p < 0.5, torch.full_like(p, -20.0), torch.full_like(p, 20.0)))
        return self._preimage(x, torch.special.ndtr, "the normal probability")
