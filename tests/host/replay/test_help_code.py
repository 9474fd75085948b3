"""Code of help lines is computed from a list of what may be, and nothing else."""
import pytest
import torch

import replay_path  # noqa: F401
from help_code import Evaluator, Refused

X = torch.tensor([0.0, 4.0])
REFUSED = [
    "__import__('os').system('true')", "open('/etc/passwd')", "x.__class__", "x.__class__.__mro__", "x.data_ptr()",
    "torch.load('x')", "torch.ops.aten.log(x)", "torch.hub.load('a', 'b')", "torch._C", "x.numpy()", "x.apply_(abs)",
    "(lambda: x)()", "[x for x in (1,)]", "x if x else x", "f'{x}'", "'a' * 10", "x; x", "import os", "x[0]", "x[0:1]",
    "eval('1')", "getattr(x, 'shape')", "x.clamp(**{})", "x.backward()", "torch.eye(1000000)", "y", "x.requires_grad",
    "torch.linspace(0, 1, 10000000)", "1 < 2 < 3", "del x", "x = y = 1", "x.y = 1", "x" + " + x" * 200, "(" * 250, "",
    "torch.float32.fget", "torch.finfo(x).min", "math.__loader__", "F.torch", "x @ 3", "True.real", "b'x'", "x.clamp(",
]
COMPUTED = {
    "(x + 1e-12).sqrt()": (X + 1e-12).sqrt(), "x.clamp(min=1e-12).log()": X.clamp(min=1e-12).log(),
    "torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0)": torch.tensor([0.0, 2.0]),
    "2 * (math.log(2) - x)": 2 * (0.6931471805599453 - X),
    "x.clamp(-1 + 1e-06, 1 - 1e-06)": X.clamp(-1 + 1e-6, 1 - 1e-6),
    "x % x.clamp(min=1)": torch.tensor([0.0, 0.0]), "x.masked_fill(~(x > 0), torch.finfo(x.dtype).min)":
        torch.tensor([torch.finfo(torch.float32).min, 4.0]), "x + 1e-06 * torch.eye(2)": X + 1e-6 * torch.eye(2),
    "F.softplus(x)": torch.nn.functional.softplus(X), "-x": -X, "x[x > 1]": torch.tensor([4.0]),
    "x.to(torch.float16)": X.half(), "x ** 2": X**2, "max(x.numel(), 1)": 2, "2 ** 3": 8.0,
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused(code):
    with pytest.raises(Refused):
        Evaluator({"x": X}).run(code)


@pytest.mark.parametrize("code", COMPUTED)
def test_what_is_computed(code):
    value = Evaluator({"x": X}).run(code)
    assert torch.equal(value, COMPUTED[code]) if isinstance(value, torch.Tensor) else value == COMPUTED[code]


def test_large_powers_stay_small():
    with pytest.raises(Refused):
        Evaluator({}).run("10 ** 10 ** 10")


def test_an_assignment_adds_a_name():
    evaluator = Evaluator({"x": X})
    evaluator.run("scale = 8 / x.abs().amax()")
    assert torch.equal(evaluator.run("x * scale"), torch.tensor([0.0, 8.0]))
