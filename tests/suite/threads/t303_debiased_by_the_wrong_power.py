"""Variance-adapted SGD divides its moments by beta**step instead of 1 - beta**step, which vanishes with time."""
# label: phase=optimizer mechanism=OVF category=N5 category_alt=N2 first_step=
# label: birth_op=aten::div,aten::mul,aten::pow,aten::square,aten::sub,aten::add,aten::add_ kind=+inf,-inf,nan
# label: severity=error loss_stays_finite=no dtype=fp32 model=linear family=svag_debias needs= fragile=no
# label: thread=kozistr/pytorch_optimizer#525 uses= fix_kind=other
# fix: both moments are divided by one minus the power of beta, as in any bias correction
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class VarianceAdapted(torch.optim.Optimizer):
    """Steps of momentum, each coordinate shortened by the estimated noise of its gradient."""

    def __init__(self, parameters, lr=0.05, beta=0.8):
        super().__init__(parameters, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state.update(step=0, mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
                state["step"] += 1
                beta = group["beta"]
                power = beta ** state["step"]
                state["mean"].mul_(beta).add_(parameter.grad, alpha=1 - beta)
                state["square"].mul_(beta).add_(parameter.grad.square(), alpha=1 - beta)
                share = 1 - power if FIXED else power
                mean = state["mean"].div(share)  # BUG-ALT
                square = state["square"].div(share)  # BUG-ALT
                rho = min(0.9999, (1 - beta) * (1 + power) / ((1 + beta) * (1 - power)))
                if rho >= 0.9999:
                    factor = torch.ones_like(mean)
                else:
                    noise = ((square - mean.square()) / (1 - rho)).clamp(min=0)  # BUG
                    factor = mean.square() / (mean.square() + rho * noise + 1e-16)  # BUG-ALT
                parameter.add_((factor * mean).clamp(-1, 1), alpha=-group["lr"])  # BUG-ALT


torch.manual_seed(525)
model = nn.Linear(6, 1)
optimizer = VarianceAdapted(model.parameters())
for step in range(420):
    x = torch.randn(16, 6)
    target = x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0, -1.0])[:, None] + 0.3 * torch.randn(16, 1)
    loss = (model(x) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # BUG-ALT
print(f"loss {loss.item():.4f}")
