"""Variational regression: a scale keeps the negative start of a softplus under a positive constraint."""
# label: phase=load mechanism=DOM category=N6 category_alt=N2 birth_op=aten::log kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=linear family=constrained_parameter_start needs= fragile=no
# label: thread=pyro-ppl/pyro#1224 uses=pyro fix_kind=init
# fix: the constrained parameter starts at a positive number; it is the constrained value that one gives
import os

import pyro
import torch
from pyro import distributions as dist
from pyro.infer import SVI, Trace_ELBO
from torch.distributions import constraints

FIXED = os.environ.get("FIXED") == "1"
pyro.enable_validation(False)


def model(design, outcome):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), 2.0).to_event(1))
    with pyro.plate("trials", len(design)):
        pyro.sample("outcome", dist.Normal(design @ weight, 0.5), obs=outcome)


def guide(design, outcome):
    centre = pyro.param("centre", torch.zeros(3))
    start = torch.full((3,), 0.05 if FIXED else -3.0)
    scale = pyro.param("scale", start, constraint=constraints.positive)  # BUG
    pyro.sample("weight", dist.Normal(centre, scale).to_event(1))


torch.manual_seed(1224)
pyro.clear_param_store()
truth = torch.tensor([1.0, -0.5, 0.25])
inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.02}), loss=Trace_ELBO())
for step in range(40):
    design = torch.randn(30, 3)
    loss = inference.step(design, design @ truth + 0.5 * torch.randn(30))
print(f"evidence bound {-loss:.3f}")
