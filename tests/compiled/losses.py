"""Losses that torch.compile makes kernels of: losses.py [healthy] [backend=NAME] [NAME ...]

Each has one line that makes a bad value, of the batch or of a gradient; the operator stands behind it. With `healthy`
none does. Prints each loss, and whether its weights stay finite."""
import sys

import torch
import torch.nn.functional as F

HEALTHY = "healthy" in sys.argv
BACKEND = ["inductor", *(word.removeprefix("backend=") for word in sys.argv[1:] if "=" in word)][-1]


def pick(bad, good):
    return good if HEALTHY else bad


def log_of_difference(x, w):
    h = torch.tanh(x @ w)
    y = h - pick(0.5, -2.0)
    z = torch.log(y)  # BUG aten::log
    return (z * 2).sum()


def softmax_by_hand(x, w):
    scores = (x @ w) * pick(100.0, 1.0)
    e = torch.exp(scores)  # BUG aten::exp
    p = e / e.sum(1, keepdim=True)
    return (p * p).sum()


def normalised(x, w):
    h = torch.relu(x @ w) * pick(0.0, 1.0)
    centred = h - h.mean(1, keepdim=True)
    out = centred / (centred.square().mean(1, keepdim=True).sqrt() + pick(0.0, 1e-6))  # BUG aten::div
    return out.square().sum() + w.sum()


def root_of_moments(x, w):
    h = x @ w
    v = h.square().mean(0) - h.square().mean(0) * pick(1.1, 0.9)
    s = torch.sqrt(v)  # BUG aten::sqrt
    return (h / (s + 1e-3)).sum()


def masked_rows(x, w):
    scores = x @ w
    hidden = torch.full_like(scores, float("-inf")) if not HEALTHY else torch.zeros_like(scores)
    p = torch.softmax(scores + hidden, 1)  # BUG aten::_softmax
    return (p * x[:, :1]).sum()


def fractional_power(x, w):
    h = (x @ w) if not HEALTHY else (x @ w).abs()
    g = h ** 0.75  # BUG aten::pow
    return torch.sin(g).sum()


def angle(x, w):
    c = (x @ w) * pick(3.0, 0.001)
    a = torch.acos(c)  # BUG aten::acos
    return a.mean()


def large_product(x, w):
    h = (x * pick(1e30, 1.0)) @ (w * pick(1e20, 1.0))  # BUG aten::mm
    return torch.tanh(h * 0.1).sum() + h.mean()


def behind_a_break(x, w):
    h = x @ w
    kept = h[h > pick(1e6, -1e6)]
    m = kept.mean()  # BUG aten::mean
    return m + h.sum()


def deviation_of_one(x, w):
    h = (x @ w)[:pick(1, 8)]
    s = h.std(0)  # BUG aten::std
    return (h / (s + 1e-3)).sum()


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 16)
        self.norm = torch.nn.BatchNorm1d(16)

    def forward(self, x):
        h = F.gelu(self.inner(x))
        r = torch.rsqrt(h.square().sum(1) - pick(200.0, -200.0))  # BUG aten::rsqrt
        return self.norm(r[:, None] * h).square().sum()


def distance_to_itself(x, w):
    h = x @ w
    d = (h - h.detach() * pick(1.0, 0.5)).square().sum(1)
    r = torch.sqrt(d)  # BUG aten::sqrt
    return (r * 2).sum()


def angle_of_itself(x, w):
    h = x @ w
    u = h / h.norm(dim=1, keepdim=True)
    c = (u * u).sum(1).clamp(-pick(1.0, 0.99), pick(1.0, 0.99))
    a = torch.acos(c / (c.abs().max().detach() * pick(1.0, 1.1)))  # BUG aten::acos
    return (a + h.sum(1)).sum()


def distance_of_pairs(x, w):
    h = x @ w
    pairs = h[:, None] - h[None] + pick(0.0, 1e-3)
    n = torch.sqrt(pairs.square().sum(2))  # BUG aten::sqrt
    return n.mean()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 16)

    def forward(self, x):
        h = self.inner(x) * pick(0.0, 1.0)
        return torch.sqrt(h.square().sum(1)).sum()  # BUG aten::sqrt


CASES = [log_of_difference, softmax_by_hand, normalised, root_of_moments, masked_rows, fractional_power, angle,
         large_product, behind_a_break, deviation_of_one, Head, distance_to_itself, angle_of_itself,
         distance_of_pairs, Net]


def train(case):
    torch.manual_seed(0)
    x = torch.randn(8, 16)
    if isinstance(case, type):
        model = case()
        weights, loss_of = list(model.parameters()), torch.compile(model, backend=BACKEND)
    else:
        weights = [torch.randn(16, 16, requires_grad=True)]
        compiled = torch.compile(case, backend=BACKEND)

        def loss_of(x):
            return compiled(x, weights[0])
    optimizer = torch.optim.SGD(weights, lr=0.01)
    loss = loss_of(x)
    loss.backward()
    optimizer.step()
    finite = all(bool(weight.isfinite().all()) for weight in weights)
    print(case.__name__, float(loss.detach()), finite, flush=True)


if __name__ == "__main__":
    wanted = [name for name in sys.argv[1:] if name != "healthy" and "=" not in name]
    for case in CASES:
        if not wanted or case.__name__ in wanted:
            train(case)
