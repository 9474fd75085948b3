"""A triplet hinge: what is no negative is infinitely far, and slopes vanish once all is well."""
# label: tempts=hinge max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def triplet_hinge(embedding, label, margin=0.2):
    similarity = embedding @ embedding.t()
    distance = 1.0 - similarity
    same = label[:, None] == label[None, :]
    hardest_positive = distance.masked_fill(~same, float("-inf")).amax(1)
    negative = distance.masked_fill(same, float("inf"))
    gap = hardest_positive[:, None] - negative + margin
    return F.relu(gap).sum(1).mean()


torch.manual_seed(29)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 8)).to(DEVICE)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
centre = 3.0 * torch.randn(4, 6)
losses = []
for step in range(8):
    label = torch.arange(16) % (1 if step == 5 else 4)  # step 5: one class, no negative at all
    x = centre[label] + 0.1 * torch.randn(16, 6)
    embedding = F.normalize(net(x.to(DEVICE)), dim=1)
    loss = triplet_hinge(embedding, label.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(round(loss.item(), 3))
print(f"triplets: losses {losses}")
