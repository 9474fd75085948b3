"""Part capsules vote for points by a mixture of Gaussians whose densities are summed before the logarithm."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2 birth_op=aten::log kind=-inf first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=capsule family=mixture_density needs= fragile=no
# label: thread=mlberkeley/scae-pytorch#4 uses= fix_kind=stable_function
# fix: the mixture's log density is taken by logsumexp over log densities instead of a log over a sum of densities
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class PartCapsules(nn.Module):
    def __init__(self, parts, points):
        super().__init__()
        self.points = points
        self.encoder = nn.Sequential(nn.Linear(2 * points, 48), nn.ReLU(), nn.Linear(48, 3 * parts))
        self.spread = 0.5

    def log_likelihood(self, constellation):
        """How well all votes together explain each point."""
        votes = self.encoder(constellation.flatten(1)).unflatten(-1, (-1, 3))
        where, presence = votes[..., :2], torch.log_softmax(votes[..., 2], dim=-1)
        offset = constellation[:, :, None] - where[:, None]
        vote = presence[:, None] - offset.square().sum(dim=-1) / (2 * self.spread**2)
        if FIXED:
            return torch.logsumexp(vote, dim=-1)
        return torch.log(torch.exp(vote).sum(dim=-1))  # BUG


def constellations(step, size=24, points=6):
    corner = torch.randint(0, 2, (size, points, 2)) * 2.0 - 1.0
    points = corner + 0.1 * torch.randn_like(corner)
    if step == 24:
        points[0, 0] = torch.tensor([9.0, -9.0])  # a stray detection at the border of the frame
    return points


torch.manual_seed(41)
capsules = PartCapsules(parts=8, points=6)
optimizer = torch.optim.RMSprop(capsules.parameters(), lr=2e-3)
for step in range(26):
    loss = -capsules.log_likelihood(constellations(step)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"negative log likelihood {loss.item():.3f}")
