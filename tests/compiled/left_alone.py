"""What a program must not notice when the graph of a compiled region is run once more.

Every region here hands back a bad value or a bad gradient."""
import gc

import torch
from torch.utils.checkpoint import checkpoint


def once(name, region, *args, backward=False):
    result = region(*args)
    if backward:
        result.sum().backward()
    print(name, result.detach().flatten()[:2].tolist(), flush=True)


w = torch.nn.Parameter(torch.ones(3))
x = torch.tensor([[1.0, -1.0, 2.0], [0.0, 1.0, 3.0]])


@torch.compile
def halves_its_weight(x):
    with torch.no_grad():
        w.mul_(0.5)
    return (x * w).log()


@torch.compile
def halves_a_view(x):
    w.detach().mul_(0.5)
    return (x * w).log()


once("halves", halves_its_weight, x)
print("weight", w.detach().tolist())
once("halves a view", halves_a_view, x)
print("weight", w.detach().tolist())

gradients = []
w.register_hook(lambda gradient: gradients.append(1))


@torch.compile
def root(x):
    return (x * w).square().sum(1).sqrt()


once("root", root, x * 0, backward=True)
print("hook was called", len(gradients), w.grad.isfinite().tolist())

norm = torch.nn.BatchNorm1d(3)


@torch.compile
def normalised(x):
    return norm(torch.log(x))


once("norm", normalised, x)
print("batches", norm.num_batches_tracked.item(), norm.running_mean.tolist()[2])


@torch.compile
def dropped(x):
    return torch.nn.functional.dropout(torch.log(x), 0.5)


torch.manual_seed(3)
torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5))(x)
dropped(x)
print("random", torch.rand(2).tolist())
torch.compile(lambda x: torch.log(x) + torch.normal(torch.zeros(2, 3), torch.ones(2, 3)))(x)
print("random", torch.rand(2).tolist())


@torch.compile
def adds_to(x, total):
    total.add_((x * w).log().sum())
    return (x * w).log().sum()


for _ in range(3):
    total = torch.ones(())
    result = adds_to(x, total)
del total, result
gc.collect()
print("nodes alive", sum(type(value).__name__ == "CompiledFunctionBackward" for value in gc.get_objects()))


@torch.compile
def block(x):
    return (x * w).log().exp()


h = x.clone().requires_grad_()
y = h - 4
for _ in range(6):
    y = checkpoint(block, y, use_reentrant=False)
y.sum().backward()
print("checkpoint", h.grad.isfinite().any().item())

saved = []


def keep(tensor):
    saved.append(1)
    return tensor


with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
    once("hooks of saved tensors", torch.compile(lambda x: torch.log(x - 5) * w), x)
print("saved", len(saved))

with torch.autocast("cpu", torch.bfloat16):
    torch.compile(lambda x: torch.log(torch.nn.functional.linear(x, w[None]) - 100))(x)
    with torch.no_grad():
        w.mul_(2)
    print("cast", torch.nn.functional.linear(x, w[None]).flatten().tolist())

profiled = torch.compile(lambda x: torch.log(x.abs() + 1) * w)
profiled(x)
with torch.profiler.profile() as profile:
    profiled(x)
print("profiled", [event.key for event in profile.key_averages() if "numsan" in event.key or "detach" in event.key])

with torch.inference_mode():
    once("inference", torch.compile(lambda x: torch.log(x - 6)), x)
with torch.no_grad():
    once("no gradients", torch.compile(lambda x: torch.log(x - 7)), x)
print("gradients are on", torch.is_grad_enabled())
