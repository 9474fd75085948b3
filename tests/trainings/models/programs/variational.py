"""Pyro infers a regression with groups by normal guides, independent ones and one of full rank; predictions between.

The bug: one late batch is constant, and is divided by its deviation. Nothing is validated any more by then.
"""
import pyro
import torch
from loop import arguments, show
from pyro import distributions as dist
from pyro.infer import SVI, Predictive, Trace_ELBO, TraceMeanField_ELBO
from pyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from torch.distributions import constraints

args = arguments(11)
pyro.set_rng_seed(11)


def model(x, group, y=None):
    spread = pyro.sample("spread", dist.LogNormal(0.0, 1.0))
    weight = pyro.sample("weight", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    with pyro.plate("groups", 4):
        offset = pyro.sample("offset", dist.Normal(0.0, spread))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.StudentT(4.0, (x * weight).sum(-1) + offset[..., group], 0.5), obs=y)


def by_hand(x, group, y=None):
    """Each variable by itself, its scale kept positive by a constraint."""
    positive = constraints.positive
    pyro.sample("spread", dist.LogNormal(pyro.param("s", torch.tensor(0.0)),
                                         pyro.param("ss", torch.tensor(0.1), constraint=positive)))
    pyro.sample("weight", dist.Normal(pyro.param("w", torch.zeros(3)),
                                      pyro.param("ws", torch.full((3,), 0.1), constraint=positive)).to_event(1))
    with pyro.plate("groups", 4):
        pyro.sample("offset", dist.Normal(pyro.param("o", torch.zeros(4)),
                                          pyro.param("os", torch.full((4,), 0.1), constraint=positive)))


def batch_of(count):
    x, group = torch.randn(count, 3), torch.randint(0, 4, (count,))
    return x, group, x @ torch.tensor([1.0, -2.0, 0.5]) + group + 0.3 * torch.randn(count)


def standardised(y):
    return (y - y.mean()) / y.std()  # BUG


guides = [AutoNormal(model), AutoMultivariateNormal(model), by_hand]
bounds = [TraceMeanField_ELBO(), Trace_ELBO(num_particles=2), Trace_ELBO()]
inferences = [SVI(model, guide, pyro.optim.ClippedAdam({"lr": 0.02, "lrd": 0.995}), loss=bound)
              for guide, bound in zip(guides, bounds)]
for step in range(args.steps):
    x, group, y = batch_of(16)
    if step == args.bug_step:
        y = torch.full((16,), 2.0)
    if step == 100:
        pyro.enable_validation(False)
    loss = inferences[step % 3].step(x, group, standardised(y))
    if step % 80 == 79:
        for guide in guides:
            drawn = Predictive(model, guide=guide, num_samples=4)(x, group)
            print("predicted", drawn["y"].mean().item().hex())
print("loss", float(loss).hex())
show(sum(value.detach().double().sum() for value in pyro.get_param_store().values()))
