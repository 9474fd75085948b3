"""Values that are fine on the way forward, and derivatives that are not."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.utils.checkpoint import checkpoint


def heading_of_a_still_object():
    """atan2 of displacements of 1e-22: the sum of their squares is subnormal, its reciprocal infinite."""
    # expect: op=aten::reciprocal phase=backward kind=inf mechanism=SING category=N3 step=2
    motion = nn.Linear(2, 2, bias=False)
    nn.init.eye_(motion.weight)
    opt = torch.optim.SGD(motion.parameters(), lr=1e-3)
    for scale in (1.0, 1.0, 1e-22, 1.0):
        step = motion(scale * torch.tensor([[3.0, 1.0], [1.0, 2.0]]))
        heading = torch.atan2(step[:, 1], step[:, 0])  # BUG
        loss = heading.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return motion.weight


def divergence_of_a_pruned_mixture():
    """kl_div with learned target weights: one is pruned to zero, where xlogy has no slope."""
    # expect: op=aten::div phase=backward kind=nan mechanism=SING category=N3 step=2
    weights = nn.Parameter(torch.tensor([0.5, 0.3, 0.2]))
    logits = nn.Parameter(torch.zeros(3))
    opt = torch.optim.SGD([weights, logits], lr=0.05)
    for step in range(4):
        if step == 2:
            with torch.no_grad():
                weights[2] = 0.0
        target = weights.square() / weights.square().sum()
        loss = F.kl_div(logits.log_softmax(0), target, reduction="sum")  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    return weights


def phase_of_a_faint_signal():
    """The angle of complex numbers of 1e-30: the square of their modulus is zero."""
    # expect: op=aten::div phase=backward kind=inf,nan mechanism=SING category=N3 step=2
    gain = nn.Parameter(torch.ones(4))
    opt = torch.optim.SGD([gain], lr=0.01)
    for scale in (1.0, 1.0, 1e-30, 1.0):
        signal = torch.complex(gain * 5.7 * scale, gain.square() * scale)
        loss = torch.angle(signal).sum()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    return gain


def clipped_infinity():
    """A learned spread is pruned to zero, its root has no slope there, and clipping makes infinity a nan."""
    # expect: op=aten::div phase=backward kind=inf mechanism=SING category=N3 step=2
    spread = nn.Parameter(torch.tensor([0.5, 0.3, 0.2]))
    opt = torch.optim.SGD([spread], lr=0.01)
    for step in range(4):
        if step == 2:
            with torch.no_grad():
                spread[0] = 0.0
        root = spread.sqrt()  # BUG
        loss = (root - 1).square().sum()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([spread], 1.0)
        opt.step()
    return spread


def clipped_to_nothing():
    """Distances in metres instead of kilometres: gradients of 1e20, a norm that overflows, an update of zero."""
    # expect: op=aten::_foreach_norm,aten::linalg_vector_norm phase=optimizer kind=inf mechanism=OVF
    # expect: category=N5,N1,N3 step=2 finite=yes
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for scale in (1.0, 1.0, 1e10, 1e10):
        x = scale * (1 + torch.rand(4, 3))
        loss = (model(x) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # BUG
        opt.step()
    return model.weight


def hook_on_a_module():
    """A full backward hook gives every gradient of a head norm one; a batch without labels has none."""
    # expect: op=aten::div phase=backward kind=nan mechanism=DIV0,SING category=N3,N5,N2 step=2

    def to_norm_one(module, inputs, outputs):
        return tuple(g / g.norm() for g in inputs)  # BUG

    encode, head = nn.Linear(4, 6), nn.Linear(6, 3)
    head.register_full_backward_hook(to_norm_one)
    opt = torch.optim.SGD([*encode.parameters(), *head.parameters()], lr=0.1)
    for labelled in (1.0, 1.0, 0.0, 1.0):
        scores = head(torch.tanh(encode(torch.randn(5, 4))))
        loss = labelled * F.cross_entropy(scores, torch.tensor([0, 1, 2, 0, 1]))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return encode.weight


def hook_after_accumulation():
    """The optimizer runs inside the backward pass; its update divides by the norm of the gradient."""
    # expect: op=aten::div phase=backward,optimizer kind=nan mechanism=DIV0,SING category=N5,N3,N2

    @torch.no_grad()
    def update(parameter):
        parameter -= 0.1 * parameter.grad / parameter.grad.norm()  # BUG
        parameter.grad = None

    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for labelled in (1.0, 1.0, 0.0, 1.0):
        scores = model(torch.randn(5, 4))
        loss = labelled * F.cross_entropy(scores, torch.tensor([0, 1, 2, 0, 1]))
        loss.backward()
    return model[0].weight


def double_backward_of_a_function():
    """A gradient penalty through a hand-written backward: its own derivative is 1 / sqrt(0)."""
    # expect: op=aten::div phase=backward kind=inf,nan mechanism=SING category=N3 step=2

    class PowerThreeHalves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x.sqrt()

        @staticmethod
        def backward(ctx, outgoing):
            x, = ctx.saved_tensors
            return outgoing * 1.5 * x.sqrt()  # BUG

    critic = nn.Linear(3, 1)
    nn.init.ones_(critic.weight)
    nn.init.zeros_(critic.bias)
    opt = torch.optim.SGD(critic.parameters(), lr=1e-3)
    for scale in (1.0, 1.0, 0.0, 1.0):
        x = (scale * torch.rand(4, 3)).requires_grad_()
        if scale == 0.0:
            nn.init.zeros_(critic.bias)
        score = PowerThreeHalves.apply(critic(x)).sum()
        slope, = torch.autograd.grad(score, x, create_graph=True)
        loss = (slope.square().sum(1) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return critic.weight


def checkpointed_logarithm():
    """Activation checkpointing: the forward op lies inside the function that is run again."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 step=2
    first, second = nn.Linear(4, 4), nn.Linear(4, 1)
    nn.init.eye_(first.weight)
    nn.init.zeros_(first.bias)
    opt = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1e-3)

    def block(x):
        hidden = first(x)
        return hidden.log()  # BUG

    for sign in (1.0, 1.0, -1.0, 1.0):
        x = sign * (1 + torch.rand(6, 4))
        loss = second(checkpoint(block, x, use_reentrant=False)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return first.weight


def checkpointed_root():
    """A root at zero inside a checkpointed function: its derivative is born in the second run of the op."""
    # expect: op=aten::div phase=backward kind=inf mechanism=SING category=N3 step=2
    first, second = nn.Linear(4, 4, bias=False), nn.Linear(4, 1)
    nn.init.eye_(first.weight)
    nn.init.ones_(second.weight)
    opt = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1e-4)

    def block(x):
        power = first(x)
        return power.sqrt()  # BUG

    for scale in (1.0, 1.0, 0.0, 1.0):
        x = torch.rand(6, 4) * scale
        loss = second(checkpoint(block, x, use_reentrant=False)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss, *(p.grad for p in first.parameters())


def checkpointed_root_reentrant():
    """The same with the reentrant kind, which runs a backward inside the backward."""
    # expect: op=aten::div phase=backward kind=inf mechanism=SING category=N3 step=2
    scale = nn.Parameter(torch.ones(4))
    opt = torch.optim.SGD([scale], lr=1e-3)

    def block(x, scale):
        power = x * scale
        return power.sqrt()  # BUG

    for step in range(4):
        if step == 2:
            with torch.no_grad():
                scale[1] = 0.0
        x = 1 + torch.rand(6, 4)
        loss = (checkpoint(block, x, scale, use_reentrant=True) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return scale


def gradients_per_sample():
    """vmap over grad: one sample lies where the root of its squared error has no slope."""
    # expect: op=aten::div phase=backward,forward kind=nan,inf mechanism=SING,DIV0 category=N3 step=0
    weights = torch.zeros(3)

    def distance(weights, x, y):
        error = weights @ x - y
        return (error * error).sqrt()  # BUG

    y = torch.tensor([1.0, 0.0, 2.0, 3.0])
    for _ in range(2):
        x = torch.randn(4, 3)
        slopes = vmap(grad(distance), in_dims=(None, 0, 0))(weights, x, y)
        weights = weights - 0.1 * slopes.mean(0)
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.weight.copy_(weights)
    model(x).sum().backward()
    return model.weight


def logarithm_under_vmap():
    """An ensemble by vmap over functional_call: the forward op of one member leaves its domain."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 step=2
    base = nn.Linear(3, 2)
    stacked = {"weight": nn.Parameter(torch.ones(2, 2, 3)), "bias": nn.Parameter(torch.ones(2, 2))}
    opt = torch.optim.SGD(stacked.values(), lr=1e-3)

    def member(parameters, x):
        rate = functional_call(base, parameters, (x,))
        return rate.log()  # BUG

    for sign in (1.0, 1.0, -2.0, 1.0):
        x = sign * (1 + torch.rand(5, 3))
        loss = vmap(member, in_dims=(0, None))(stacked, x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return stacked["weight"]


def logarithm_after_an_ignored_range():
    """What is born inside record_function("numsan:ignore") is the program's own business; the rest is not."""
    # expect: op=aten::log phase=forward kind=inf mechanism=DOM category=N4,N2,N1 step=2
    model = nn.Sequential(nn.Linear(4, 1), nn.ReLU())
    nn.init.ones_(model[0].weight)
    nn.init.zeros_(model[0].bias)
    opt, losses = torch.optim.SGD(model.parameters(), lr=1e-3), []
    for sign in (1.0, 1.0, -1.0, 1.0):
        x = sign * (1 + torch.rand(6, 4))
        with torch.autograd.profiler.record_function("numsan:ignore"):
            probe = (x * 0).log()
        rate = model(x) + 0 * torch.where(probe.isfinite(), probe, 0).sum()
        loss = (rate - rate.log()).mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss)
    return losses
