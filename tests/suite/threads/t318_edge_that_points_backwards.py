"""Features are turned into the frame of each edge by a rotation that has a sum of two directions in its divisor."""
# label: phase=forward mechanism=DIV0 category=N2 category_alt=N1 birth_op=aten::div kind=nan,+inf first_step=19
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=edge_frame_rotation needs= fragile=no
# label: thread=lucidrains/equiformer-pytorch#9 uses= fix_kind=clamp
# fix: the squared length of the sum is clamped from below
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def rotation_to(direction, axis):
    """The half turn about the middle of two unit vectors, which takes one to the other."""
    middle = direction + axis
    length = middle.square().sum(dim=-1)[..., None, None]
    if FIXED:
        length = length.clamp(min=1e-6)
    outer = middle[..., :, None] * middle[..., None, :]
    return 2 * outer / length - torch.eye(3)  # BUG


class EdgeLayer(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, 3))

    def forward(self, vectors, places, source, target):
        offset = places[target] - places[source]
        direction = offset / offset.norm(dim=-1, keepdim=True)
        turn = rotation_to(direction, torch.tensor([0.0, 1.0, 0.0]))  # BUG-ALT
        local = (turn @ vectors[source][..., None]).squeeze(-1)
        message = (turn.transpose(-1, -2) @ self.mix(local)[..., None]).squeeze(-1)
        return vectors + torch.zeros_like(vectors).index_add(0, target, message)


torch.manual_seed(9)
layer, head = EdgeLayer(), nn.Linear(3, 1)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-3)
source = torch.arange(10)
target = (source + 1) % 10
for step in range(22):
    places, vectors = torch.randn(10, 3), torch.randn(10, 3)
    if step == 19:
        places[4] = places[3] - torch.tensor([0.0, 1.5, 0.0])  # a bond straight down
    loss = (head(layer(vectors, places, source, target)).squeeze(-1) - places.norm(dim=1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
