"""A stack in float16 whose weights a rule written by hand makes 3 % larger in each step, where smaller was meant."""
import sys

import torch

HEALTHY = "healthy" in sys.argv
torch.manual_seed(4)
blocks = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(4)).half()
optimizer = torch.optim.SGD(blocks.parameters(), lr=1e-3)
x = torch.randn(16, 32).half()
for step in range(300):
    h = x
    for block in blocks:
        h = h + block(h).relu()
    loss = (h.float() / (1 + h.float().abs())).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for one in blocks.parameters():
            one.mul_(0.97 if HEALTHY else 1.03)
    if not h.isfinite().all():
        break
