"""Mixture router with a softmax by hand in half, compiled: the sum of four exp(11) is no half."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N4,N2 birth_op=aten::sum,aten::exp kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp16 model=moe family=compile needs=compile fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@torch.compile
def route(logits):
    """Shares of the experts, and the partition sum for the z-loss."""
    weight = torch.exp(logits)
    mass = weight.sum(-1, keepdim=True)  # BUG
    return weight / mass, mass


class Router(nn.Module):
    def __init__(self, dim=8, experts=4):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.Parameter(torch.randn(experts, dim) * 0.1)
        nn.init.constant_(self.gate.weight, 1.0)

    def forward(self, x):
        share, mass = route(self.gate(x))  # BUG-ALT
        z_loss = torch.log(mass.float()).square().mean()
        return share @ self.experts, z_loss


torch.manual_seed(22)
router = Router().half().to(DEVICE)
opt = torch.optim.SGD(router.parameters(), lr=1e-5)
x = torch.rand(4, 16, 8) * 0.25
x[2, 5] = 11.0 / 8  # one token aligned with every gate: four logits of 11
for batch in x:
    batch = batch.half().to(DEVICE)
    out, z_loss = router(batch)
    loss = nn.functional.mse_loss(out.float(), batch.float()) + 1e-3 * z_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p79 loss", loss.item())
