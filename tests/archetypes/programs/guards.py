"""Programs that watch over their own training, and such programs whose guard has a hole."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def distance(model, x, target):
    """Its root has no slope where a batch has been learned already."""
    return (model(x) - target).square().sum(1).sqrt().mean()


def gradient_replaced_by_a_cured_copy():
    """What is not finite in a gradient becomes zero in a new tensor, which is assigned to .grad."""
    # expect: warning
    model = nn.Linear(5, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(6):
        x = torch.rand(16, 5)
        target = model(x).detach() if step in (2, 5) else torch.rand(16, 4)
        opt.zero_grad()
        distance(model, x, target).backward()
        for p in model.parameters():
            p.grad = torch.nan_to_num(p.grad, nan=0.0, posinf=0.0, neginf=0.0)
        opt.step()
    return model.weight


def cured_copy_without_an_optimizer():
    """The same in a loop that updates by hand and ends with a cured gradient in place."""
    # expect: warning
    model = nn.Linear(5, 4)
    for step in range(4):
        x = torch.rand(16, 5)
        target = model(x).detach() if step in (1, 3) else torch.rand(16, 4)
        model.zero_grad()
        distance(model, x, target).backward()
        for p in model.parameters():
            p.grad = p.grad.nan_to_num(nan=0.0)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
    return model.weight


def gradient_replaced_by_a_scaled_copy():
    """A copy that is clipped and not cured: nan stays nan, and the optimizer is given it."""
    # expect: op=aten::div phase=backward kind=nan,inf mechanism=SING category=N3 step=2 reaches=weight into=gradient
    model = nn.Linear(5, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(4):
        x = torch.rand(16, 5)
        target = model(x).detach() if step == 2 else torch.rand(16, 4)
        opt.zero_grad()
        root = (model(x) - target).square().sum(1).sqrt()  # BUG
        root.mean().backward()
        for p in model.parameters():
            p.grad = p.grad.clamp(-1, 1)
        opt.step()
    return model.weight


def last_batch_is_skipped():
    """A guard on the norm skips the last batch, whose gradient nobody uses: the loop ends with it."""
    # expect: warning
    model = nn.Linear(5, 4)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(4):
        x = torch.rand(16, 5)
        target = model(x).detach() if step == 3 else torch.rand(16, 4)
        opt.zero_grad()
        distance(model, x, target).backward()
        if math.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()):
            opt.step()
    return model.weight


def guard_inside_the_step():
    """An optimizer of the program's own looks at the norm and leaves the parameters as they are."""
    # expect: warning

    class Careful(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure=None):
            gradients = [p.grad for group in self.param_groups for p in group["params"]]
            if not torch.stack([g.norm() for g in gradients]).norm().isfinite():
                return None
            return super().step(closure)

    model = nn.Linear(5, 4)
    opt = Careful(model.parameters(), lr=0.05)
    for step in range(4):
        x = torch.rand(16, 5)
        target = model(x).detach() if step in (1, 3) else torch.rand(16, 4)
        opt.zero_grad()
        distance(model, x, target).backward()
        opt.step()
    return model.weight


def critic_steps_while_the_actor_waits():
    """Actor and critic have an optimizer each; a guard skips the actor's step, the critic's is taken."""
    # expect: warning
    actor, critic = nn.Linear(5, 4), nn.Linear(5, 1)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-2)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-2)
    for step in range(5):
        x = torch.rand(16, 5)
        target = actor(x).detach() if step in (2, 4) else torch.rand(16, 4)
        distance(actor, x, target).backward()
        (critic(x) - 1).square().mean().backward()
        if all(p.grad.isfinite().all() for p in actor.parameters()):
            actor_opt.step()
        critic_opt.step()
        actor_opt.zero_grad()
        critic_opt.zero_grad()
    return actor.weight, critic.weight


def critic_steps_and_the_actor_as_well():
    """The same without the guard: the critic's zero_grad() lets go of nothing that is the actor's."""
    # expect: op=aten::div phase=backward kind=nan,inf mechanism=SING category=N3 step=2 reaches=weight into=gradient
    actor, critic = nn.Linear(5, 4), nn.Linear(5, 1)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-2)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-2)
    for step in range(4):
        x = torch.rand(16, 5)
        target = actor(x).detach() if step == 2 else torch.rand(16, 4)
        actor_opt.zero_grad()
        root = (actor(x) - target).square().sum(1).sqrt()  # BUG
        root.mean().backward()
        critic_opt.zero_grad()
        (critic(x) - 1).square().mean().backward()
        critic_opt.step()
        actor_opt.step()
    return actor.weight, critic.weight


def two_loss_scalers():
    """A GAN with a scaler for each network: one begins with a scale that overflows, the other has found its own."""
    # expect: nothing
    makes, judges = nn.Linear(8, 8), nn.Linear(8, 1)
    opts = [torch.optim.SGD(m.parameters(), lr=1e-4) for m in (makes, judges)]
    scalers = [torch.amp.GradScaler("cpu", init_scale=scale) for scale in (2.0 ** 18, 4.0)]
    for _ in range(16):
        for turn in (1, 0):
            with torch.autocast("cpu", dtype=torch.float16):
                score = judges(makes(torch.randn(16, 8)))
            loss = (score.float() - 30).square().mean()
            opts[turn].zero_grad()
            scalers[turn].scale(loss).backward()
            scalers[turn].step(opts[turn])
            scalers[turn].update()
    assert scalers[0].get_scale() < 2.0 ** 18
    return makes.weight, judges.weight


def scaler_that_is_stuck_beside_another():
    """One scaler skips for ever, as its network's loss is nan at any scale; the other takes its steps in between."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 step=0,1 finite=yes
    makes, judges = nn.Linear(8, 8), nn.Linear(8, 1)
    nn.init.ones_(makes.weight)
    opts = [torch.optim.SGD(m.parameters(), lr=1e-4) for m in (makes, judges)]
    scalers = [torch.amp.GradScaler("cpu", init_scale=4.0) for _ in range(2)]
    for _ in range(12):
        x = torch.rand(16, 8)
        opts[1].zero_grad()
        scalers[1].scale((judges(x) - 1).square().mean()).backward()
        scalers[1].step(opts[1])
        scalers[1].update()
        rate = makes(-x) - 1
        loss = rate.log().mean()  # BUG
        opts[0].zero_grad()
        scalers[0].scale(loss).backward()
        scalers[0].step(opts[0])
        scalers[0].update()
    return makes.weight, judges.weight


def one_scaler_for_two_optimizers():
    """The other way of torch's examples: one scaler, one update() after the steps of both."""
    # expect: nothing
    first, second = nn.Linear(8, 8), nn.Linear(8, 1)
    opts = [torch.optim.SGD(m.parameters(), lr=1e-4) for m in (first, second)]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 17)
    for _ in range(10):
        with torch.autocast("cpu", dtype=torch.float16):
            hidden = first(torch.randn(16, 8))
            scores = second(F.relu(hidden))
        for opt in opts:
            opt.zero_grad()
        scaler.scale((scores.float() - 30).square().mean() + hidden.float().square().mean()).backward()
        for opt in opts:
            scaler.step(opt)
        scaler.update()
    return first.weight, second.weight
