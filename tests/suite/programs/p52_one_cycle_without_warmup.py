"""A home-made one-cycle optimizer with warm-up share 0 divides 0 by 0 as the cycle starts."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::div kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=optimizer_eps needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class OneCycleSGD(torch.optim.Optimizer):
    """SGD that holds a base rate, then climbs to `peak` and falls to 0; the clock is a tensor."""

    def __init__(self, params, base, peak, hold, total, pct_start):
        super().__init__(params, {"base": base, "peak": peak})
        self.hold, self.total, self.pct_start = hold, total, pct_start
        self.clock = torch.zeros((), device=DEVICE)
        self.count = 0

    def rate(self, group):
        if self.count < self.hold:
            return torch.as_tensor(group["base"], device=DEVICE)
        climb = self.pct_start * self.total
        elapsed = self.clock - self.hold
        rising = elapsed / climb  # BUG
        falling = (self.total - elapsed) / (self.total - climb)
        return group["peak"] * torch.minimum(rising, falling)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            rate = self.rate(group)
            for param in group["params"]:
                param.sub_(rate * param.grad)
        self.clock += 1
        self.count += 1


torch.manual_seed(52)
x = torch.randn(40, 6)
y = (x[:, 0] > x[:, 1]).long()
x, y = x.to(DEVICE), y.to(DEVICE)
model = nn.Sequential(nn.Linear(6, 10), nn.ELU(), nn.Linear(10, 2)).to(DEVICE)
opt = OneCycleSGD(model.parameters(), base=0.01, peak=0.1, hold=2, total=6, pct_start=0.0)
for _ in range(5):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()  # BUG-ALT
print(f"one cycle: last loss {loss.item():.4f}")
