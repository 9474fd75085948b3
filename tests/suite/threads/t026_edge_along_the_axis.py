"""An equivariant potential turns edges by their angles; a hand-written slope of atan2 divides by an underflow."""
# label: phase=backward mechanism=DIV0 category=N3 category_alt=N8 birth_op=aten::div kind=+inf,-inf,nan first_step=22
# label: severity=error loss_stays_finite=yes dtype=fp32 model=gnn family=edge_angles needs= fragile=no
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
        if FIXED:
            square = square.clamp_min(1e-7)
        else:
            square = torch.where(square == 0, 1.0, square)
        return x / square * grad, -y / square * grad  # BUG-ALT


class EdgePotential(nn.Module):
    """Energies of edges by length, angle about the y axis and radial functions; forces are derivatives."""

    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, positions, source, target):
        edge = positions[target] - positions[source]
        length = torch.linalg.vector_norm(edge, dim=-1)
        unit = edge / length[:, None]
        angle = SafeAtan2.apply(unit[:, 0], unit[:, 2])  # BUG
        features = torch.stack([length, unit[:, 1], torch.cos(angle), torch.sin(angle)], dim=-1)
        return self.net(features).sum()


def cluster(step):
    """Five atoms near a square; in one relaxed structure a bond lies along y but for the last bits."""
    positions = torch.randn(5, 3)
    if step == 22:
        positions[1] = positions[0] + torch.tensor([0.0, 1.1, 0.0])
        positions[0, 0], positions[1, 0] = 0.0, 2e-23
        positions[0, 2], positions[1, 2] = 0.0, 1e-22
    return positions


torch.manual_seed(1574)
potential = EdgePotential()
encoder = nn.Linear(3, 3)
with torch.no_grad():
    encoder.weight.copy_(torch.eye(3))
    encoder.bias.zero_()
optimizer = torch.optim.Adam([*potential.parameters(), encoder.weight], lr=1e-3)
source, target = torch.combinations(torch.arange(5)).unbind(dim=1)
for step in range(24):
    positions = cluster(step)
    if step == 22:
        with torch.no_grad():
            encoder.weight.copy_(torch.eye(3))  # fine-tuning starts from the pretrained frame
    energy = potential(positions @ encoder.weight, source, target)
    loss = (energy - positions.square().sum()).square()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not encoder.weight.isfinite().all():
        break
print(f"energy error {loss.item():.4f}, frame {encoder.weight.trace().item():.3f}")
