"""Sparse counts as log priors: the guarded log, with minus infinity where a word never occurs."""
# label: tempts=log max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def log_or_minus_inf(x):
    """Both branches are safe: the log sees 1 where x is 0, so that its slope is finite."""
    present = x > 0
    safe = torch.where(present, x, torch.ones_like(x))
    return torch.where(present, safe.log(), float("-inf"))


torch.manual_seed(4)
counts = torch.randint(0, 3, (24, 10)).float()
counts[:, 0] += 1.0  # no document is empty
counts = counts.to(DEVICE)
topic_of = torch.randint(10, (24,)).to(DEVICE)
topic_of = torch.where(counts.gather(1, topic_of[:, None])[:, 0] > 0, topic_of, 0)

strength = nn.Parameter(torch.ones(10).to(DEVICE))
bias = nn.Parameter(torch.zeros(10).to(DEVICE))
opt = torch.optim.SGD([strength, bias], lr=0.1)
for step in range(6):
    weighted = counts * torch.relu(strength)
    log_posterior = torch.log_softmax(log_or_minus_inf(weighted) + bias, dim=1)
    loss = -log_posterior.gather(1, topic_of[:, None]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"double where: loss {loss.item():.4f}")
