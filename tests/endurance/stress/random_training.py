"""Small trainings at random: models of classes made on the spot and changed between steps, optimizers, losses, hooks,
exceptions in backward passes, forks that train a step."""
import contextlib
import copy
import ctypes
import gc
import hashlib
import os
import signal

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import births

WIDTH = 8
PATIENCE = 120  # seconds that a forked child has
LIBC = ctypes.CDLL(None)
KINDS = ("linear", "norm", "convolution", "recurrent", "attention", "batch", "mixed")  # of parts


def digest(tensors):
    """sha256 over the bits of tensors."""
    hasher = hashlib.sha256()
    for tensor in tensors:
        hasher.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()


class Raised(Exception):
    """What a hook of the program raises in a backward pass."""


def part(random, generator, kind=None):
    """A module, its parameters from the generator: the random numbers of the process are left alone."""
    kind = kind or random.choice(KINDS)
    with torch.device("meta"):
        made = {"linear": lambda: nn.Linear(WIDTH, WIDTH), "norm": lambda: nn.LayerNorm(WIDTH),
                "convolution": lambda: nn.Conv1d(1, 1, 3, padding=1), "recurrent": lambda: nn.GRU(WIDTH, WIDTH),
                "attention": lambda: nn.MultiheadAttention(WIDTH, 2, batch_first=True),
                "batch": lambda: nn.BatchNorm1d(WIDTH), "mixed": lambda: nn.Sequential(
                    nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))}[kind]()
    made.to_empty(device="cpu")
    made.kind = kind
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=generator) * 0.4 - 0.2)
        for name, value in made.named_buffers():
            value.fill_(name.endswith("running_var"))
    return made


def apply(made, x):
    kind = getattr(made, "kind", "linear")
    if kind == "convolution":
        return made(x[:, None])[:, 0]
    if kind == "recurrent":
        return made(x[None])[0][0]
    if kind == "attention":
        return made(x[None], x[None], x[None])[0][0]
    return made(x)


def warm_up():
    """Every kind of part in each precision, forward and backward. oneDNN makes a kernel at its first use, and whoever
    wants it meanwhile waits until it is made: in a child that was forked then, for ever, with numsan or without."""
    for kind in KINDS:
        for cast in (False, True):
            generator = torch.Generator().manual_seed(0)
            made, x = part(None, generator, kind), torch.rand((6, WIDTH), generator=generator).requires_grad_()
            with torch.autocast("cpu", torch.bfloat16, enabled=cast):
                y = apply(made, x)
            y.float().square().sum().backward()


def forward(self, x):
    for child in self.parts:
        x = x + torch.tanh(apply(child, x)) if self.checkpoints == "none" or not torch.is_grad_enabled() else \
            x + torch.tanh(checkpoint(apply, child, x, use_reentrant=self.checkpoints == "old",
                                      preserve_rng_state=False))
    if self.birth is not None:
        x = births.some(self.birth, x)
    return self.head(x)


def model_of(random, generator):
    """Of a class of its own, as each program has: classes, code objects and modules come and go."""
    made = type(f"Net{random.randrange(10 ** 6)}", (nn.Module,), {"forward": forward})()
    made.parts = nn.ModuleList(part(random, generator) for _ in range(random.randint(1, 4)))
    made.head = linear(generator)
    made.checkpoints = random.choice(("none", "none", "new", "old"))
    made.birth = None
    return made


def linear(generator):
    made = nn.utils.skip_init(nn.Linear, WIDTH, WIDTH)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=generator) - 0.5)
    return made


class ByHand:
    """An update without torch.optim."""

    def __init__(self, parameters):
        self.parameters = list(parameters)

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    def step(self):
        with torch.no_grad():
            for parameter in self.parameters:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=0.01)


OPTIMIZERS = (
    lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), lambda p: torch.optim.Adam(p, lr=1e-3, foreach=False),
    lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True), lambda p: torch.optim.Adam(p, lr=1e-3, fused=True),
    lambda p: torch.optim.RMSprop(p, lr=1e-3), ByHand,
)
LOSSES = (
    lambda y, x: F.mse_loss(y, x), lambda y, x: F.cross_entropy(y, x.argmax(-1)),
    lambda y, x: F.smooth_l1_loss(y, x), lambda y, x: F.kl_div(y.log_softmax(-1), x.softmax(-1), reduction="batchmean"),
    lambda y, x: F.binary_cross_entropy_with_logits(y, (x > 0).float()),
)


def change(random, generator, made):
    """Modules come, go and change places while the optimizer keeps what it had."""
    what = random.choice(("replace", "append", "drop", "copy", "freeze", "nothing", "move"))
    if what == "replace":
        made.parts[random.randrange(len(made.parts))] = part(random, generator)
    elif what == "append":
        made.parts.append(part(random, generator))
    elif what == "drop" and len(made.parts) > 1:
        del made.parts[-1]
    elif what == "copy":
        made.parts[0] = copy.deepcopy(made.parts[-1])
    elif what == "freeze":
        made.parts[0].requires_grad_(random.random() < 0.5)
    elif what == "move":
        made.head.weight.data = made.head.weight.data.clone()


def raise_in_backward(random, loss, made):
    """A backward pass that a hook ends; what it has written by then may be anything but is always the same."""
    def hook(gradient):
        raise Raised
    handle = next(made.head.parameters()).register_hook(hook)
    try:
        loss.backward(retain_graph=random.random() < 0.5)
    except Raised:
        pass
    finally:
        handle.remove()
    made.zero_grad()


def second_order(loss, made):
    """A gradient's norm is part of what is minimised."""
    gradients = torch.autograd.grad(loss, list(made.head.parameters()), create_graph=True)
    return loss + sum(gradient.square().sum() for gradient in gradients) * 0.1


def abort_if_it_hangs():
    """A process that goes on for longer than PATIENCE says where it is in Python, and ends by SIGABRT: a core, where
    they are left, says for which lock it waits."""
    LIBC.signal(signal.SIGALRM, ctypes.cast(LIBC.abort, ctypes.c_void_p))
    signal.alarm(PATIENCE)


def in_a_child(made, x):
    """A forked child trains a step and says what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            abort_if_it_hangs()
            made.zero_grad()
            made.head(torch.tanh(x)).square().mean().backward()
            with torch.no_grad():
                made.head.weight.sub_(made.head.weight.grad)
            os.write(writing, digest(made.head.parameters()).encode())
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return said if status == 0 else f"child ended with {os.waitstatus_to_exitcode(status)}"


def train(random, generator, with_births, forks):
    """One training; what it leaves, as text. With `forks` None it is a forked child's, which keeps off autocast: torch
    has its cache of casts under a lock, which another thread may have held at the fork, and then the child waits for
    ever. A checkpoint enters autocast, too, when the backward pass computes it anew, whether or not it is enabled."""
    casts = 0 if forks is None else 0.2
    made = model_of(random, generator)
    if forks is None:
        made.checkpoints = "none"
    make = random.choice(OPTIMIZERS)
    optimizer, loss_of = make(made.parameters()), random.choice(LOSSES)
    steps, said = random.randint(3, 8), []
    bad_from = random.randrange(steps) if with_births and random.random() < 0.3 else None
    for step in range(steps):
        x = torch.rand((6, WIDTH), generator=generator) - 0.5
        if bad_from is not None and step >= bad_from:
            made.birth = random
        cast = random.random() < casts
        with torch.autocast("cpu", torch.bfloat16) if cast else contextlib.nullcontext():
            y = made(x)
        loss = loss_of(y.float(), x)
        choice = random.random()
        if choice < 0.1:
            raise_in_backward(random, loss, made)
            continue
        if choice < 0.2 and made.checkpoints == "none":
            loss = second_order(loss, made)
        optimizer.zero_grad()
        loss.backward()
        if random.random() < 0.5:
            nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
        said.append(repr(loss.item()))
        if random.random() < (forks or 0):
            said.append(in_a_child(made, x))
        if random.random() < 0.3:
            change(random, generator, made)
            optimizer = make(made.parameters())
    return " ".join([*said, digest(made.parameters()), digest(made.buffers())])
