"""A potential is fitted to forces; a hand-written slope of atan2 divides by squares that all but underflow."""
# label: phase=backward mechanism=SING category=N3 category_alt=N8 birth_op=aten::div,aten::mul kind=+inf,-inf,nan
# label: severity=error loss_stays_finite=yes dtype=fp32 model=gnn family=edge_angles needs= fragile=no first_step=22
# label: thread=facebookresearch/fairchem#1574 uses= fix_kind=clamp
# fix: the hand-written backward clamps the sum of squares from below, where it only replaced an exact zero by one
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class SafeAtan2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return torch.atan2(y, x)

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        square = x.square() + y.square()
        square = square.clamp_min(1e-7) if FIXED else torch.where(square == 0, 1.0, square)
        return x / square * grad, -y / square * grad  # BUG


class EdgePotential(nn.Module):
    """The energy of a cluster by lengths of edges and their angles about the y axis, in a cell that is fitted, too."""

    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.SiLU(), nn.Linear(width, 1))
        self.cell = nn.Parameter(torch.eye(3))

    def forward(self, positions, source, target):
        edge = (positions[target] - positions[source]) @ self.cell
        length = torch.linalg.vector_norm(edge, dim=-1)
        unit = edge / length[:, None]
        angle = SafeAtan2.apply(unit[:, 0], unit[:, 2])
        features = torch.stack([length, unit[:, 1], torch.cos(angle), torch.sin(angle)], dim=-1)
        return self.net(features).sum()


def cluster(step):
    """Five atoms; in one relaxed structure a bond lies along y but for the last bits."""
    positions = torch.randn(5, 3)
    if step == 22:
        positions[0] = torch.tensor([0.0, 0.5, 0.0])
        positions[1] = torch.tensor([6e-23, 1.6, 8e-23])
    return positions.requires_grad_()


torch.manual_seed(1574)
potential = EdgePotential()
optimizer = torch.optim.Adam(potential.net.parameters(), lr=1e-3)
source, target = torch.combinations(torch.arange(5)).unbind(dim=1)
for step in range(23):
    if step == 22:
        optimizer.add_param_group({"params": [potential.cell]})  # fine-tuning begins
    positions = cluster(step)
    energy = potential(positions, source, target)
    forces = -torch.autograd.grad(energy, positions, create_graph=True)[0]
    loss = (forces + positions.detach()).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"force error {loss.item():.4g}, cell {potential.cell.trace().item():.3f}")
