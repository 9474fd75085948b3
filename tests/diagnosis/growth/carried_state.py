"""A recurrent state carried over the steps in float16, with a gain above 1: it grows though the loss does not."""
import sys

import torch

HEALTHY = "healthy" in sys.argv
torch.manual_seed(5)
weight = torch.nn.Parameter((torch.eye(16) * (0.95 if HEALTHY else 1.08)).half())
head = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD([weight, *head.parameters()], lr=1e-4)
state = torch.ones(4, 16).half()
for step in range(300):
    state = state.detach() @ weight + 0.01 * torch.rand(4, 16).half()
    loss = (head(state.float().abs().log1p()) - torch.randn(4, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not state.isfinite().all():
        break
