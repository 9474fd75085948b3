"""Root-mean-square norm by hand: a sensor that reports in other units makes the squares infinite, the block zero."""
# label: phase=forward mechanism=OVF category=N2 category_alt=N1,N7,N8 birth_op=aten::pow,aten::square kind=+inf first_step=2
# label: severity=error loss_stays_finite=yes dtype=fp32 model=mlp family=muted needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class RmsBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        power = x.square().mean(-1, keepdim=True)  # BUG
        unit = x * torch.rsqrt(power + 1e-6)  # 1 / sqrt(inf) is 0, and so is the block
        return self.out(unit * self.gain)


torch.manual_seed(83)
model = RmsBlock(8).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
spread = []
for step in range(6):
    x = torch.randn(16, 8)
    target = x.sum(1, keepdim=True)
    if step >= 2:
        x = x.sign() * (x.abs() + 0.1) * 3e20  # reported in attometres from here on
    prediction = model(x.to(DEVICE))
    loss = nn.functional.mse_loss(prediction, target.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
    spread.append(prediction.detach().std().item())
print("p83 spread of predictions", " ".join(f"{s:.2f}" for s in spread))
