"""A discrete router with Gumbel noise from a draw of exactly 0, over masked experts."""
# label: tempts=gumbel max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
EXPERTS = 6


def gumbel(uniform):
    """Noise of a uniform draw; at 0 it is minus infinity, that is, never chosen."""
    return -torch.log(-torch.log(uniform))


def route(logits, uniform, available, tau=0.7):
    noisy = logits.masked_fill(~available, float("-inf")) + gumbel(uniform)
    return torch.softmax(noisy / tau, dim=-1)


torch.manual_seed(12)
router = nn.Linear(8, EXPERTS).to(DEVICE)
experts = nn.ModuleList(nn.Linear(8, 3) for _ in range(EXPERTS)).to(DEVICE)
opt = torch.optim.Adam([*router.parameters(), *experts.parameters()], lr=1e-2)
available = torch.tensor([True, True, False, True, True, False]).to(DEVICE)
for step in range(5):
    x = torch.randn(16, 8).to(DEVICE)
    y = torch.randint(3, (16,)).to(DEVICE)
    uniform = 0.9 * torch.rand(16, EXPERTS)
    uniform[step, 1] = 0.0
    weight = route(router(x), uniform.to(DEVICE), available)
    answers = torch.stack([expert(x) for expert in experts], dim=1)
    loss = nn.functional.cross_entropy((weight[:, :, None] * answers).sum(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"gumbel: loss {loss.item():.3f}")
