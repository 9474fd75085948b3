"""A target network in bf16 that takes a tenth of the difference each step, as its author wants it."""
# label: tempts=precision max_severity=none dtype=bf16 needs=
import copy
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@torch.no_grad()
def follow(target, online, share=0.1):
    for slow, fast in zip(target.parameters(), online.parameters()):
        slow.lerp_(fast.to(slow.dtype), share)


torch.manual_seed(45)
online = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 2)).to(DEVICE)
target = copy.deepcopy(online).bfloat16().requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=5e-3)
for step in range(12):
    state, following = torch.randn(32, 4).to(DEVICE), torch.randn(32, 4).to(DEVICE)
    reward = state[:, 0]
    with torch.no_grad():
        best = reward + 0.9 * target(following.bfloat16()).float().amax(1)
    value = online(state)[:, 0]
    loss = nn.functional.smooth_l1_loss(value, best)
    opt.zero_grad()
    loss.backward()
    opt.step()
    follow(target, online)
print(f"target network in bf16: loss {loss.item():.3f}")
