"""A graph layer whose padded edges add their infinite weight to a scratch row that is cut off."""
# label: tempts=scratch max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
NODES, EDGES, PADDED = 20, 60, 72


def padded_edges():
    """Edges padded to a fixed size; padding points at the row behind the last node."""
    source = torch.randint(NODES, (EDGES,))
    target = (source + torch.randint(1, NODES, (EDGES,))) % NODES
    fill = torch.full((PADDED - EDGES,), NODES)
    return torch.cat([source, fill]), torch.cat([target, fill])


def inverse_distance_strength(position, source, target):
    """Sum of 1/distance per node; padding has distance 0 and lands in the scratch row."""
    padded_position = torch.cat([position, position.new_zeros(1, 3)])
    distance = (padded_position[source] - padded_position[target]).norm(dim=1)
    scratch = position.new_zeros(NODES + 1)
    scratch.index_add_(0, target, 1.0 / distance)
    return scratch[:NODES]


torch.manual_seed(3)
encoder = nn.Linear(3, 16).to(DEVICE)
readout = nn.Linear(16, 1).to(DEVICE)
opt = torch.optim.Adam([*encoder.parameters(), *readout.parameters()], lr=1e-2)
energy = torch.randn(NODES, 1).to(DEVICE)
for step in range(5):
    source, target = (index.to(DEVICE) for index in padded_edges())
    position = torch.randn(NODES, 3).to(DEVICE)
    strength = inverse_distance_strength(position, source, target)
    hidden = torch.relu(encoder(position)) * torch.tanh(strength)[:, None]
    loss = (readout(hidden) - energy).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"index_add scratch: loss {loss.item():.3f}")
