"""Operators at random on a pool of tensors: views, writes in place, casts, other layouts, modes. Values stay within
[-1, 1] but for those of births."""
import copy
import io
import pickle

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import births

SIZE = 8


class Passing(TorchDispatchMode):
    """Calls each operator on, in Python."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Doubled(torch.autograd.Function):
    """A backward pass in Python."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * 2 + x * 0


def put(tensors, random, value):
    """A square of the pool becomes `value`, squeezed into [-1, 1]."""
    value = value.to_dense() if value.layout != torch.strided else value
    value = torch.view_as_real(value).sum(-1) if value.is_complex() else value
    value = value.detach().float().reshape(-1)[:SIZE * SIZE]
    flat = torch.zeros(SIZE * SIZE)
    flat[:value.numel()] = value
    tensors[random.randrange(len(tensors))] = flat.reshape(SIZE, SIZE).tanh()


FUNCTIONS = (
    lambda a, b, c: a + b * c, lambda a, b, c: a @ b, lambda a, b, c: torch.where(a > 0, b, c),
    lambda a, b, c: a.softmax(-1), lambda a, b, c: F.layer_norm(a, (SIZE,)), lambda a, b, c: torch.cat([a, b, c]),
    lambda a, b, c: torch.stack([a, b]).mean(0), lambda a, b, c: torch.einsum("ij,kj->ik", a, b),
    lambda a, b, c: a.sort(-1).values, lambda a, b, c: a.topk(3).values, lambda a, b, c: a.cumsum(0),
    lambda a, b, c: a.logsumexp(0), lambda a, b, c: torch.cdist(a, b + 3), lambda a, b, c: a.tril() + b.triu(1),
    lambda a, b, c: F.conv1d(a[None], b[:, :, None]), lambda a, b, c: F.max_pool1d(a[None], 2),
    lambda a, b, c: F.embedding((b * 3).long().abs(), a), lambda a, b, c: a.gather(0, (b * 7).long().abs()),
    lambda a, b, c: a.roll(1, 0).flip(-1), lambda a, b, c: F.pad(a, (1, 1)), lambda a, b, c: (a + 2).std(0),
    lambda a, b, c: torch.linalg.solve(a + 20 * torch.eye(SIZE), b), lambda a, b, c: a.to(torch.bfloat16) + b,
    lambda a, b, c: (a.half() * 2).float(), lambda a, b, c: torch.complex(a, b) * 1j, lambda a, b, c: a.double() / 3,
    lambda a, b, c: a.to_sparse() * 2, lambda a, b, c: torch.fft.rfft(a), lambda a, b, c: (a * 9).round().int() // 2,
    lambda a, b, c: torch.func.vmap(torch.sin)(a), lambda a, b, c: torch.func.grad(lambda x: (x * b).sum())(a),
    lambda a, b, c: F.scaled_dot_product_attention(a[None], b[None], c[None]), lambda a, b, c: a.var(0) + b.amax(0),
    lambda a, b, c: torch.from_numpy(a.numpy().copy()), lambda a, b, c: torch.tensor(a.tolist()),
    lambda a, b, c: copy.deepcopy(a), lambda a, b, c: pickle.loads(pickle.dumps(a)), lambda a, b, c: Doubled.apply(a),
)
WRITES = (
    lambda a, b: a.add_(b), lambda a, b: a.mul_(0.5), lambda a, b: a.copy_(b.t()), lambda a, b: a[1:3].fill_(0.25),
    lambda a, b: a.t().mul_(b), lambda a, b: a.view(-1)[::2].neg_(), lambda a, b: a.masked_fill_(b > 0, 0.5),
    lambda a, b: a.index_put_((torch.tensor([0, 3]),), b[:2]), lambda a, b: a.lerp_(b, 0.3),
    lambda a, b: a.scatter_add_(0, (b * 7).long().abs(), b), lambda a, b: a.addcmul_(a, b), lambda a, b: a.zero_(),
    lambda a, b: torch._foreach_add_([a[:4], a[4:]], 0.125), lambda a, b: torch._foreach_mul_([a[0], a[7]], [0.5, 2.0]),
    lambda a, b: a.as_strided((4, 4), (2, 1), 3).sub_(0.5), lambda a, b: a.diagonal().copy_(b[0]),
    lambda a, b: a.unfold(0, 2, 2)[0].add_(b[:, :2]), lambda a, b: torch.add(a, b, out=a), lambda a, b: a.squeeze_(),
    lambda a, b: a.set_(b.clone()), lambda a, b: torch.sub(b, 0.5, out=a.t()),
    lambda a, b: a.view(torch.int32).bitwise_and_(-2),
)
FAILURES = (
    lambda a: a @ torch.ones(SIZE + 1), lambda a: a.view(3, 5), lambda a: a[SIZE], lambda a: a.t().contiguous()[0, 99],
    lambda a: torch.linalg.cholesky(-torch.eye(SIZE)), lambda a: nn.Parameter(a.clone()).add_(1),
    lambda a: torch.cat([a, torch.ones(3)]), lambda a: a.clone().backward(), lambda a: a.index_select(0, a),
    lambda a: F.embedding(torch.tensor([99]), a), lambda a: a.half().add_(torch.ones(SIZE, dtype=torch.complex64)),
)


def function(random, tensors):
    put(tensors, random, random.choice(FUNCTIONS)(*(random.choice(tensors) for _ in range(3))))


def warm_up():
    """Every function once in a mode: torch notes of an operator that Python sees it, and two threads that come to that
    at the same time end in an assertion of torch's, or in memory that is gone, with numsan or without. And once in
    bfloat16, for which oneDNN makes kernels of its own."""
    for mode in (Passing(), torch.autocast("cpu", torch.bfloat16)):
        with mode:
            for each in FUNCTIONS:
                each(*(torch.rand((SIZE, SIZE), generator=torch.Generator().manual_seed(k)) for k in range(3)))


def write(random, tensors):
    a, b = random.choice(tensors), random.choice(tensors).clone()
    random.choice(WRITES)(a, b)
    a.clamp_(-1, 1)


def failure(random, tensors):
    try:
        random.choice(FAILURES)(random.choice(tensors))
    except (RuntimeError, IndexError):
        return
    raise AssertionError("an operator that cannot work did")


def in_a_mode(random, tensors):
    mode = random.choice((Passing, torch.no_grad, torch.enable_grad, lambda: torch.autocast("cpu", torch.bfloat16),
                          lambda: torch.profiler.record_function("part"), torch.inference_mode))
    with mode():
        for _ in range(3):
            function(random, tensors)
    tensors[:] = [tensor.clone() for tensor in tensors]  # none that inference mode made stays


def saved(random, tensors):
    file = io.BytesIO()
    torch.save(tensors, file)
    file.seek(0)
    tensors[:] = torch.load(file)


def bad(random, tensors):
    """A birth that is absorbed, or one that spreads to a part of the pool and is swept out again."""
    value = random.choice(tensors)
    if random.random() < 0.5:
        put(tensors, random, births.absorbed(random, value))
        return
    put(tensors, random, births.some(random, value))
    try:
        function(random, tensors)
    except (RuntimeError, IndexError):
        pass  # NaN is no index
    for tensor in tensors:
        tensor.nan_to_num_(0.5)


def run(random, tensors, count, with_births):
    """`count` ops at random; `tensors` is a list of squares, which are replaced and written to."""
    kinds = [function] * 8 + [write] * 6 + [failure, in_a_mode, saved] + [bad] * with_births
    for _ in range(count):
        random.choice(kinds)(random, tensors)
