"""Bad values in all places of a backward pass: its formulas, hooks, functions in Python, checkpoints, the backward of a
backward, threads of autograd's. Prints whether a record function listens in all of the process."""
import ctypes
import pathlib
import sys

import torch
from torch.utils.checkpoint import checkpoint

torch_library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib/libtorch_cpu.so"))
listens = torch_library._ZN2at18hasGlobalCallbacksEv
listens.restype = ctypes.c_bool


def parameter(value=1.0):
    return torch.nn.Parameter(torch.full((3,), value))


class Reciprocal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        zero = g - g
        return g / zero


def root(x):
    return (x - x).sqrt()


plain, hooked, seen, written, again, once_more, twice, summed, handed = (parameter() for _ in range(9))
optimizer = torch.optim.SGD([plain, hooked, seen, written, again, once_more, twice, summed, handed], lr=0.0)


def spoil(g):
    return g / (g - g)


def spoil_gradient(leaf):
    leaf.grad.div_(leaf.grad - leaf.grad)


def run(name, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(name, file=sys.stderr)


run("formula", root(plain).sum())
y = hooked * 2
y.register_hook(spoil)
run("hook", y.sum())
seen.register_post_accumulate_grad_hook(spoil_gradient)
run("leaf's hook", (seen * 3).sum())
run("function", Reciprocal.apply(written).sum())
run("reentrant checkpoint", checkpoint(root, again, use_reentrant=True).sum())
run("checkpoint", checkpoint(root, once_more, use_reentrant=False).sum())
gradient, = torch.autograd.grad((twice * twice).sum(), twice, create_graph=True)
run("backward of a backward", (root(gradient - 1) + twice).sum())
big = torch.full((3,), 3e38)
run("sum of gradients", (summed * big + summed * big).sum())
node = (handed * 2).grad_fn
handed.grad = node(torch.ones(3))[0] / torch.zeros(3)  # a node that the engine does not run
optimizer.step()
print("listens" if listens() else "nobody listens")
