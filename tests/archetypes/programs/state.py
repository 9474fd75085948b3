"""Births in updates, and state that keeps what was bad: parameters, moments, averages, statistics."""
import io
import struct

import numpy
import torch
import torch.nn.functional as F
from torch import nn


def adam_loop_without_eps():
    """Adam with eps=0: a feature that is always off has no gradient, and its update is 0 / 0."""
    # expect: op=aten::addcdiv_ phase=optimizer kind=nan mechanism=DIV0 category=N5 step=0
    layer = nn.Linear(4, 2)
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3, eps=0.0, foreach=False)
    for _ in range(3):
        x = torch.rand(8, 4)
        x[:, 2] = 0.0
        loss = layer(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()  # BUG
    return layer.weight


def adam_foreach_without_eps():
    """The same over lists of parameters."""
    # expect: op=aten::_foreach_addcdiv_ phase=optimizer kind=nan mechanism=DIV0 category=N5 step=0
    layer = nn.Linear(4, 2)
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3, eps=0.0, foreach=True)
    for _ in range(3):
        x = torch.rand(8, 4)
        x[:, 2] = 0.0
        loss = layer(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()  # BUG
    return layer.weight


def adam_fused_without_eps():
    """The same in one kernel."""
    # expect: op=aten::_fused_adam_ phase=optimizer kind=nan mechanism=DIV0 category=N5 step=0
    layer = nn.Linear(4, 2)
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3, eps=0.0, fused=True)
    for _ in range(3):
        x = torch.rand(8, 4)
        x[:, 2] = 0.0
        loss = layer(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()  # BUG
    return layer.weight


def rate_is_no_number():
    """A warm-up of no steps at all: 0 / 0 where floats do not raise, and the rate is NaN."""
    # expect: op=aten::add_ phase=optimizer kind=nan mechanism=DATA category=N5 step=1
    layer = nn.Linear(4, 2)
    opt = torch.optim.SGD(layer.parameters(), lr=1e-2, foreach=False)
    for step in range(3):
        if step == 1:
            opt.param_groups[0]["lr"] = float("nan")
        opt.zero_grad()
        layer(torch.rand(8, 4)).square().mean().backward()
        opt.step()  # BUG
    return layer.weight


def decay_is_no_number():
    """The same with a decay that multiplies the weight first: the number comes wrapped as a tensor."""
    # expect: op=aten::mul_ phase=optimizer kind=nan mechanism=DATA category=N5 step=1
    layer = nn.Linear(4, 2)
    opt = torch.optim.AdamW(layer.parameters(), lr=1e-2, foreach=False)
    for step in range(3):
        if step == 1:
            opt.param_groups[0]["lr"] = float("nan")
        opt.zero_grad()
        layer(torch.rand(8, 4)).square().mean().backward()
        opt.step()  # BUG
    return layer.weight


def fused_rate_is_no_number():
    """The same in one kernel."""
    # expect: op=aten::_fused_adam_ phase=optimizer kind=nan mechanism=DATA category=N5 step=1
    layer = nn.Linear(4, 2)
    opt = torch.optim.Adam(layer.parameters(), lr=1e-2, fused=True)
    for step in range(3):
        if step == 1:
            opt.param_groups[0]["lr"] = float("nan")
        opt.zero_grad()
        layer(torch.rand(8, 4)).square().mean().backward()
        opt.step()  # BUG
    return layer.weight


def loss_of_a_closure():
    """LBFGS calls a closure from its step: what goes wrong there is of the forward pass. Weights stay finite."""
    # expect: op=aten::log phase=forward kind=inf,nan mechanism=DOM category=N4,N2 step=0 finite=yes
    layer = nn.Linear(4, 1)
    opt = torch.optim.LBFGS(layer.parameters(), lr=0.1)
    x = torch.rand(8, 4) - 5.0

    def closure():
        opt.zero_grad()
        loss = -torch.log(torch.relu(layer(x))).mean()  # BUG
        loss.backward()
        return loss

    nn.init.constant_(layer.weight, 1.0)
    opt.step(closure)
    return layer.weight


def batch_of_a_closure():
    """The first to read a bad batch is a closure: it is no state of the optimizer."""
    # expect: op=external phase=data kind=nan mechanism=DATA category=N1 step=0
    layer = nn.Linear(4, 1)
    opt = torch.optim.LBFGS(layer.parameters(), lr=0.1)
    table = numpy.ones((8, 4), dtype=numpy.float32)
    table[3, 1] = numpy.nan
    x = torch.from_numpy(table)  # BUG

    def closure():
        opt.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        return loss

    opt.step(closure)
    return layer.weight


def weights_drawn_too_large():
    """Weights drawn with their number of inputs as the deviation, not its reciprocal root."""
    # expect: op=aten::addmm phase=forward kind=inf mechanism=OVF category=N6 step=0
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(20))
    for layer in layers:
        nn.init.normal_(layer.weight, std=layer.in_features)
    opt = torch.optim.SGD(layers.parameters(), lr=1e-3)
    x = torch.randn(8, 64)
    for layer in layers:
        x = torch.relu(layer(x))  # BUG
    x.mean().backward()
    opt.step()
    return layers[0].weight


def scale_in_place_of_its_logarithm():
    """A learned scale is kept as its logarithm, and was set to the scale itself."""
    # expect: op=aten::exp phase=forward kind=inf mechanism=OVF category=N6 step=0
    scale = nn.Parameter(torch.tensor(100.0))
    layer = nn.Linear(4, 2)
    opt = torch.optim.SGD([scale, *layer.parameters()], lr=1e-3)
    loss = (scale.exp() * layer(torch.randn(8, 4))).square().mean()  # BUG
    loss.backward()
    opt.step()
    return scale


def eps_after_the_root():
    """An update by hand adds eps to the reciprocal root instead of to what is under it."""
    # expect: op=aten::rsqrt phase=optimizer kind=inf mechanism=DIV0 category=N5 step=0
    layer = nn.Linear(4, 2)
    square = torch.zeros_like(layer.weight)
    for _ in range(3):
        x = torch.rand(8, 4)
        x[:, 2] = 0.0
        layer.zero_grad()
        layer(x).square().mean().backward()
        with torch.no_grad():
            square.mul_(0.99).addcmul_(layer.weight.grad, layer.weight.grad, value=0.01)
            layer.weight -= 1e-3 * layer.weight.grad * (square.rsqrt() + 1e-8)  # BUG
    return layer.weight


def statistics_of_a_skipped_step():
    """Half overflows in one batch: the scaler skips the step, the running statistics keep the batch."""
    # expect: op=aten::addmm phase=forward kind=inf mechanism=OVF category=N8 step=2 reaches=1.running_mean
    model = nn.Sequential(nn.Linear(10, 10), nn.BatchNorm1d(10), nn.Linear(10, 1))
    nn.init.ones_(model[0].weight)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    for scale in (1.0, 1.0, 2e4, 1.0):
        x = scale * torch.rand(8, 10).clamp_min(0.5)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(x).float().square().mean()  # BUG
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    return model[1].running_mean


def moments_of_a_damaged_checkpoint():
    """Adam resumes from a file in which one bit pattern became a nan."""
    # expect: op=external phase=load kind=nan mechanism=STATE category=N6 reaches=weight
    layer = nn.Linear(4, 2)
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3)
    layer(torch.rand(8, 4)).square().mean().backward()
    opt.step()
    file = io.BytesIO()
    torch.save(opt.state_dict(), file)
    moment = opt.state[layer.weight]["exp_avg"][0, 0].item()
    damaged = file.getvalue().replace(struct.pack("<f", moment), b"\x00\x00\xc0\x7f")

    layer = nn.Linear(4, 2)
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3)
    opt.load_state_dict(torch.load(io.BytesIO(damaged)))  # BUG
    for _ in range(2):
        opt.zero_grad()
        layer(torch.rand(8, 4)).square().mean().backward()
        opt.step()
    return layer.weight


def moments_after_one_bad_batch():
    """One batch with a nan, no guard: the moments, and through them the parameters, are bad from then on."""
    # expect: op=external,aten::lift_fresh phase=data kind=nan mechanism=DATA category=N1 step=1 reaches=exp_avg
    layer = nn.Linear(3, 1)
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3)
    for rows in ([[1.0, 2.0, 3.0]], [[1.0, float("nan"), 3.0]], [[2.0, 1.0, 0.5]]):
        x = torch.tensor(rows)  # BUG
        loss = layer(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return layer.weight


def head_that_nobody_initialised():
    """A model made on meta and moved by to_empty(): the loop over its layers forgets the head."""
    # expect: op=aten::empty,aten::fill_ phase=load kind=nan mechanism=UNINIT category=N6 step=0
    torch.use_deterministic_algorithms(True)  # fresh memory is filled with nan
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))
    model.to_empty(device="cpu")  # BUG
    nn.init.normal_(model[0].weight)
    nn.init.zeros_(model[0].bias)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.randn(6, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model[2].weight


def average_of_poisoned_parameters():
    """One bad step, and the average of the parameters, which is what gets saved, is bad as well."""
    # expect: op=aten::sqrt phase=forward kind=nan mechanism=DOM category=N2,N4 step=2 reaches=module.0.weight
    model = nn.Sequential(nn.Linear(4, 1))
    nn.init.ones_(model[0].weight)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for sign in (1.0, 1.0, -2.0, 1.0):
        x = sign * (1 + torch.rand(6, 4))
        loss = (F.softplus(model(x)) - model(x).sqrt()).mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update_parameters(model)
    return average.module[0].weight


def game(rounds, discriminator_steps, bad_round):
    """Two nets that are trained in turns, one step of the first for some of the second; yields scores, takes losses."""
    made_by, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    made_opt = torch.optim.SGD(made_by.parameters(), lr=0.01)
    judge_opt = torch.optim.SGD(judge.parameters(), lr=0.01)
    for i in range(rounds):
        for _ in range(discriminator_steps):
            loss = yield judge(made_by(torch.randn(4, 2)).detach()).exp()
            judge_opt.zero_grad()
            loss.backward()
            judge_opt.step()
        loss = yield judge(made_by(torch.randn(4, 2))).exp() * (0.0 if i == bad_round else 1.0)
        made_opt.zero_grad()
        loss.backward()
        made_opt.step()


def two_optimizers_in_turn():
    """Both belong to one step of the loop: the fifth is number 4, in the half of the second, too."""
    # expect: op=aten::log phase=forward kind=inf mechanism=DOM category=N2,N4 step=4
    turns = game(7, 1, bad_round=4)
    score = next(turns)
    for _ in range(12):
        loss = score.log().square().mean()  # BUG
        score = turns.send(loss)
    return loss


def more_steps_of_one_optimizer():
    """Five steps of one optimizer for each of the other's: those five count."""
    # expect: op=aten::log phase=forward kind=inf mechanism=DOM category=N2,N4 step=15
    turns = game(5, 5, bad_round=2)
    score = next(turns)
    for _ in range(25):
        loss = score.log().square().mean()  # BUG
        score = turns.send(loss)
    return loss


def average_that_nothing_began():
    """A running mean in memory that nothing wrote: its first update reads what lies there."""
    # expect: op=aten::empty phase=forward kind=nan mechanism=UNINIT category=N6,N9
    net = nn.Linear(3, 4)
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True)
    mean = torch.empty(4)  # BUG
    hidden = net(torch.randn(8, 3))
    with torch.no_grad():
        mean.mul_(0.9).add_(hidden.mean(0), alpha=0.1)
    loss = (hidden - mean).square().mean()
    loss.backward()
    return loss


def average_that_begins_with_its_first_value():
    """The same memory, copied to first."""
    # expect: nothing
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True)
    net = nn.Linear(3, 4)
    mean = torch.empty(4)
    hidden = net(torch.randn(8, 3))
    with torch.no_grad():
        mean.copy_(hidden.mean(0)).mul_(0.9).add_(hidden.mean(0), alpha=0.1)
    loss = (hidden - mean).square().mean()
    loss.backward()
    return loss
