"""A LAMB optimizer scales each layer by |w|/|update|; an adapter added later is all zeros."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N6,N2 birth_op=aten::div kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=optimizer_eps needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class LowRankAdapter(nn.Module):
    """A residual correction down @ up, switched on in the middle of training."""

    def __init__(self, width, rank=2):
        super().__init__()
        self.down = nn.Parameter(torch.zeros(width, rank))
        self.up = nn.Parameter(torch.zeros(rank, width))

    def forward(self, x):
        return x + x @ self.down @ self.up


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), eps=1e-6, decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for param in group["params"]:
                update = self.direction(param, group["betas"], group["eps"])
                update = update + group["decay"] * param
                trust = param.norm() / update.norm()  # BUG
                param.sub_(group["lr"] * trust * update)

    def direction(self, param, betas, eps):
        state = self.state[param]
        if not state:
            state["first"], state["second"] = torch.zeros_like(param), torch.zeros_like(param)
        state["first"].lerp_(param.grad, 1.0 - betas[0])
        state["second"].lerp_(param.grad.square(), 1.0 - betas[1])
        return state["first"] / (state["second"].sqrt() + eps)


torch.manual_seed(56)
x = torch.randn(24, 8).to(DEVICE)
model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).to(DEVICE)
opt = Lamb(model.parameters(), lr=0.02)
for step in range(4):
    if step == 2:
        model.insert(2, LowRankAdapter(8).to(DEVICE))
        opt.add_param_group({"params": list(model[2].parameters())})
    loss = (model(x) - torch.cos(x[:, :1])).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  # BUG-ALT
print(f"adapter: last loss {loss.item():.4f}")
