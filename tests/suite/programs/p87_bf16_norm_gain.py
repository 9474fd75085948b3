"""The gains of a norm live in bf16 next to 1, and the rate of the fine-tuning is too small to move them."""
# label: phase=optimizer mechanism=PREC category=N8 category_alt=N5 birth_op=aten::add_,aten::_foreach_add_ kind=zero first_step=
# label: severity=warning loss_stays_finite=yes dtype=bf16 model=mlp family=underflow needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Normed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x):
        x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)
        return x * self.gain.float()


torch.manual_seed(87)
model = Normed(16).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
losses = []
for step in range(10):
    x = torch.randn(32, 16).to(DEVICE)
    target = 0.5 * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
    loss = (model(x) - target).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  # BUG
    losses.append(loss.item())
gain = model.gain.detach().float()
print(f"p87 loss {losses[0]:.3f} to {losses[-1]:.3f}, gains {gain.min().item():.3f} to {gain.max().item():.3f}")
