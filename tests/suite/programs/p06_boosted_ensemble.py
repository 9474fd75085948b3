"""Boosting adds a member a round and clips the vote to [0, 1]; the third round clips to 1."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2 birth_op=aten::log kind=-inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=log needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def new_member():
    """A small classifier that starts out sure of the positive class, as 90 % of the labels are."""
    member = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    nn.init.uniform_(member[2].weight, -0.01, 0.01)
    nn.init.constant_(member[2].bias, 2.2)
    return member.to(DEVICE)


def binary_cross_entropy(prob, target):
    return -(target * prob.log() + (1 - target) * (1 - prob).log()).mean()  # BUG


def vote(members, x, shrinkage=0.5):
    total = sum(shrinkage * torch.sigmoid(m(x)) for m in members)
    return total.clamp(0.0, 1.0)


def main():
    torch.manual_seed(6)
    x = torch.randn(40, 6)
    target = torch.ones(40, 1)
    target[:4] = 0.0
    x, target = x.to(DEVICE), target.to(DEVICE)

    members = []
    for _ in range(4):
        members.append(new_member())
        opt = torch.optim.Adam(members[-1].parameters(), lr=1e-3)
        loss = binary_cross_entropy(vote(members, x), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("ensemble of %d, loss %.4f" % (len(members), loss.item()))


if __name__ == "__main__":
    main()
