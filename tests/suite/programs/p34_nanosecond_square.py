"""An event model embeds distances in time and space; nanoseconds squared wrap in int64."""
# label: phase=data mechanism=DOM category=N1 category_alt=N8,N2 birth_op=aten::sqrt kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=data needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
SECOND = 1_000_000_000


def spacetime_distance(stamps, places):
    """How far each event is from the first of its sequence, in seconds and hundreds of metres."""
    elapsed = stamps - stamps[:, :1]
    time_sq = (elapsed * elapsed).double() / float(SECOND) ** 2  # PRE
    place_sq = (places - places[:, :1]).square().sum(-1)
    return torch.sqrt(time_sq + place_sq).float()  # BUG


def simulate(gaps):
    """Five events a sequence, `gaps` seconds apart, as unix time in nanoseconds."""
    start = 1_700_000_000 * SECOND
    stamps = start + (torch.arange(5) * gaps * SECOND).long().repeat(16, 1)
    return stamps, 0.1 * torch.rand(16, 5, 2)


torch.manual_seed(34)
batches = [simulate(gap) for gap in (0.25, 0.5, 1.0, 0.5, 0.25)]
model = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 1)).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for stamps, places in batches:
    distance = spacetime_distance(stamps.to(DEVICE), places.to(DEVICE))
    predicted = model(distance).squeeze(1)
    loss = (predicted - distance[:, 1]).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
print("event losses:", " ".join(f"{value:.3f}" for value in losses))
