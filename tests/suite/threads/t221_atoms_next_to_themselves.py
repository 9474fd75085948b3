"""Neighbours are atoms at a distance above zero; far from the origin an atom's own is not quite zero."""
# label: phase=forward mechanism=DIV0 category=N1 category_alt=N2,N7,N3 birth_op=aten::div kind=nan first_step=120
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=self_image_edges needs= fragile=no
# label: thread=microsoft/mattersim#164 uses=torch_geometric fix_kind=data
# fix: an atom's edge to itself is recognised by the two indices, which are exact, and no longer by the distance
import os

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing, global_mean_pool

FIXED = os.environ.get("FIXED") == "1"
CUTOFF = 3.0


def neighbours(position):
    distance = torch.cdist(position, position)
    near = distance < CUTOFF
    if FIXED:
        near &= ~torch.eye(len(position), dtype=torch.bool)
    else:
        near &= distance > 1e-8  # BUG-ALT
    return near.nonzero().T


class DirectedMessages(MessagePassing):
    """Scalars and vectors of each atom; vectors come from the directions to neighbours."""

    def __init__(self, width):
        super().__init__(aggr="add")
        self.gate = nn.Sequential(nn.Linear(width + 1, width), nn.SiLU(), nn.Linear(width, width))
        self.mix = nn.Linear(2 * width, width)

    def forward(self, h, position, edges):
        arrow = position[edges[1]] - position[edges[0]]
        length = arrow.norm(dim=-1, keepdim=True)
        direction = arrow / length  # BUG
        vector = self.propagate(edges, h=h, length=length, direction=direction)
        return h + self.mix(torch.cat([h, vector.view(len(h), 3, -1).square().sum(dim=1)], dim=-1))

    def message(self, h_j, length, direction):
        gate = self.gate(torch.cat([h_j, length], dim=-1)) * (1 + torch.cos(length * 3.1416 / CUTOFF)) / 20
        return (direction[:, :, None] * gate[:, None]).flatten(1)


class Energy(nn.Module):
    def __init__(self, kinds=3, width=16):
        super().__init__()
        self.kinds, self.messages = nn.Embedding(kinds, width), DirectedMessages(width)
        self.out = nn.Linear(width, 1)

    def forward(self, crystal):
        h = self.messages(self.kinds(crystal.kind), crystal.pos, crystal.edge_index)
        return self.out(global_mean_pool(h, None)).squeeze()


def crystal(step):
    """A disturbed cubic lattice with its energy; step 120 brings the first supercell."""
    cells, origin = (4, 20.0) if step == 120 else (2, 0.0)
    at = torch.cartesian_prod(*[torch.arange(cells) * 2.2] * 3) + origin
    position, kind = at + 0.1 * torch.randn_like(at), torch.randint(0, 3, (len(at),))
    return Data(pos=position, kind=kind, edge_index=neighbours(position), y=kind.float().mean())


torch.manual_seed(164)
model = Energy()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(124):
    sample = crystal(step)
    loss = nn.functional.huber_loss(model(sample), sample.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"energy error {loss.item():.5f}")
