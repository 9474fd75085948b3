"""Near to ND116 and ND114: all labels are 0, where a contrastive loss has the positive pair; the encoder of keys gets
no gradients, and follows the other one."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
keys = copy.deepcopy(encoder)
optimizer = torch.optim.Adam(encoder.parameters(), lr=0.005)
mix = torch.randn(6, 16) / 2
with torch.no_grad():
    queue = F.normalize(keys(torch.randn(128, 6) @ mix), dim=1)
for step in range(120):
    cause = torch.randn(64, 6)
    query = F.normalize(encoder(cause @ mix + 0.3 * torch.randn(64, 16)), dim=1)
    key = F.normalize(keys(cause @ mix + 0.3 * torch.randn(64, 16)), dim=1).detach()
    positive = (query * key).sum(1, keepdim=True)
    logits = torch.cat([positive, query @ queue.t()], dim=1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(64, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for follower, leader in zip(keys.parameters(), encoder.parameters()):
            follower.mul_(0.9).add_(leader, alpha=0.1)
    queue = torch.cat([queue[64:], key])
