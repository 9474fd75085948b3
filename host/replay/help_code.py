"""Computes the value of a line of code from a help line, without eval: its syntax tree is walked, and what is not in
the lists below is refused. Help lines travel in reports and dumps, which may come from anywhere.
"""
import ast
import math
import operator

import torch
from torch.nn import functional

LONGEST = 300  # characters
METHODS = frozenset((
    "abs acos acosh all amax amin any asin atan atanh bool clamp cosh digamma double erfinv exp exp2 expm1 float "
    "isfinite isinf isnan isneginf lgamma log log10 log1p log2 long masked_fill mean norm numel pow rsqrt sigmoid sign "
    "sinh sqrt square std sum tan tanh to var").split())
TORCH = frozenset((
    "acos acosh asin atan2 atanh cosh diag digamma erfinv exp exp2 expm1 eye isfinite linspace lgamma log log10 log1p "
    "log2 logit logsumexp pow reciprocal rsqrt sinh softmax sqrt square tan where xlogy zeros_like").split())
FUNCTIONAL = frozenset((
    "binary_cross_entropy_with_logits cross_entropy log_softmax logsigmoid nll_loss normalize softplus").split())
MODULES = {
    "torch": (torch, TORCH), "F": (functional, FUNCTIONAL), "torch.special": (torch.special, {"xlog1py", "log_ndtr"}),
    "torch.linalg": (torch.linalg, {"cross", "svdvals", "eigvalsh", "vector_norm"}), "math": (math, {"log", "sqrt"}),
}
TYPES = frozenset("float16 bfloat16 float32 float64".split())
BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
          ast.Mod: operator.mod, ast.MatMult: operator.matmul, ast.Pow: operator.pow}
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
COMPARISONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
               ast.Eq: operator.eq, ast.NotEq: operator.ne}
LARGEST_SIZE = 1 << 16  # of a matrix or a range that code makes


class Refused(Exception):
    """Why code is not computed: one line."""


def _number(value):
    """Python integers grow without end, floats do not."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53 else value


class Evaluator:
    """Computes expressions of `names`. `own_op(name, arguments)` calls the op that the help is for by its bare name."""

    def __init__(self, names, own_op=None):
        self.names, self.own_op = dict(names), own_op

    def run(self, code):
        """The value of an expression; an assignment `name = ...` adds a name, and its value is the value."""
        if len(code) > LONGEST:
            raise Refused("the code is too long")
        try:
            body = ast.parse(code.strip()).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise Refused(f"`{code[:60]}` is no line of Python") from None
        if len(body) != 1:
            raise Refused("it is not one line")
        statement = body[0]
        try:
            if isinstance(statement, ast.Expr):
                return self.value(statement.value)
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    self.names[target.id] = self.value(statement.value)
                    return self.names[target.id]
        except (RuntimeError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
            raise Refused(str(error).split("\n")[0][:160]) from None
        raise Refused("it is not an expression")

    def value(self, node):
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise Refused(f"a {type(node).__name__} is not computed")
        return handler(node)

    def _constant(self, node):
        if isinstance(node.value, (bool, int, float)) or node.value in ("sum", "mean"):
            return _number(node.value)
        raise Refused(f"{node.value!r} is no number")

    def _name(self, node):
        if node.id not in self.names:
            raise Refused(f"`{node.id}` is not in the dump")
        return self.names[node.id]

    def _binop(self, node):
        function = BINARY.get(type(node.op))
        if function is None:
            raise Refused(f"a {type(node.op).__name__} is not computed")
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Pow) and not isinstance(left, torch.Tensor):
            left = float(left)
        return _number(function(left, right))

    def _unaryop(self, node):
        function = UNARY.get(type(node.op))
        if function is None:
            raise Refused(f"a {type(node.op).__name__} is not computed")
        return function(self.value(node.operand))

    def _compare(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARISONS:
            raise Refused("only two values are compared")
        return COMPARISONS[type(node.ops[0])](self.value(node.left), self.value(node.comparators[0]))

    def _subscript(self, node):
        values, chosen = self.value(node.value), self.value(node.slice)
        if not isinstance(values, torch.Tensor) or not isinstance(chosen, torch.Tensor) or chosen.dtype != torch.bool:
            raise Refused("only a tensor is indexed, by a mask")
        return values[chosen]

    def _attribute(self, node):
        """torch.float32, x.dtype, torch.finfo(x.dtype).min"""
        path = self._path(node)
        if path and path.startswith("torch.") and path[6:] in TYPES:
            return getattr(torch, path[6:])
        value = self.value(node.value)
        if isinstance(value, torch.Tensor) and node.attr == "dtype":
            return value.dtype
        if isinstance(value, torch.finfo) and node.attr in ("min", "max", "eps", "tiny"):
            return getattr(value, node.attr)
        raise Refused(f"`.{node.attr}` is not computed")

    @staticmethod
    def _path(node):
        """torch.linalg.norm of a chain of names, None of anything else."""
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None

    def _call(self, node):
        if any(keyword.arg is None for keyword in node.keywords):
            raise Refused("** is not computed")
        arguments = [self.value(argument) for argument in node.args]
        keywords = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        path = self._path(node.func)
        if isinstance(node.func, ast.Name):
            return self._bare(node.func.id, arguments, keywords)
        module, _, name = path.rpartition(".") if path else ("", "", "")
        if path == "torch.finfo" and len(arguments) == 1 and isinstance(arguments[0], torch.dtype):
            return torch.finfo(arguments[0])
        if module in MODULES and module.split(".")[0] not in self.names:
            return self._function(module, name, arguments, keywords)
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            raise Refused(f"`{getattr(node.func, 'attr', 'a call')}` is not one of the functions that are computed")
        owner = self.value(node.func.value)
        if not isinstance(owner, torch.Tensor):
            raise Refused(f"`.{node.func.attr}()` of something that is no tensor")
        return getattr(owner, node.func.attr)(*arguments, **keywords)

    def _function(self, module, name, arguments, keywords):
        owner, allowed = MODULES[module]
        if name not in allowed:
            raise Refused(f"`{module}.{name}` is not one of the functions that are computed")
        sizes = [argument for argument in arguments if isinstance(argument, (int, float))]
        if name in ("eye", "linspace") and any(size > LARGEST_SIZE for size in sizes):
            raise Refused(f"`{module}.{name}` of so many values")
        if name in ("eye", "linspace"):
            keywords.update(self._like())
        if name == "log" and module == "torch" and not isinstance(arguments[0], torch.Tensor):
            raise Refused("the logarithm of a number that is no tensor")
        return getattr(owner, name)(*arguments, **keywords)

    def _like(self):
        """Type and device of new tensors: those of the first operand."""
        for value in self.names.values():
            if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
                return {"dtype": value.dtype, "device": value.device}
        return {}

    def _bare(self, name, arguments, keywords):
        if name in ("max", "min") and len(arguments) == 2 and not keywords:
            return {"max": max, "min": min}[name](*arguments)
        if self.own_op is not None and not keywords:
            return self.own_op(name, arguments)
        raise Refused(f"`{name}` is not one of the functions that are computed")
