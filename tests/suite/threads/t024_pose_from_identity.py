"""A camera's pose is refined from the identity quaternion, whose logarithm has an arc cosine of exactly one."""
# label: phase=backward mechanism=SING category=N3 category_alt= birth_op=aten::rsqrt,aten::mul,aten::div
# label: kind=+inf,-inf,nan first_step=20
# label: severity=error loss_stays_finite=no dtype=fp32 model=pose family=rotation_log needs= fragile=no
# label: thread=kornia/kornia#4228 uses= fix_kind=where
# fix: at the identity the arc cosine never sees one: its operand is replaced there before the function
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def rotation_log(quaternion):
    """The rotation vector, half the angle long, of unit quaternions (w, x, y, z)."""
    scalar, vector = quaternion[..., :1], quaternion[..., 1:]
    length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True).clamp_min(1e-8)
    scalar = scalar.clamp(-1.0, 1.0)
    if FIXED:
        inner = scalar.abs() < 1.0
        scalar = torch.where(inner, scalar, 0.0)
        return torch.where(inner, vector * torch.acos(scalar) / length, vector)
    return vector * torch.acos(scalar) / length  # BUG


def rotate(quaternion, points):
    scalar, vector = quaternion[:1], quaternion[1:].expand_as(points)
    cross = torch.linalg.cross(vector, points) + scalar * points
    return points + 2 * torch.linalg.cross(vector, cross)


class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.quaternion = nn.Parameter(torch.tensor([1.0, 0.0, 0.0, 0.0]))
        self.shift = nn.Parameter(torch.zeros(3))

    def forward(self, points):
        unit = self.quaternion / self.quaternion.norm()
        return rotate(unit, points) + self.shift, unit


torch.manual_seed(4228)
cloud = torch.randn(50, 3)
measured = cloud + torch.tensor([0.3, -0.2, 0.1]) + 0.01 * torch.randn(50, 3)
pose = Pose()
for stage, parameters, steps in (("shift", [pose.shift], 20), ("rotation", [pose.shift, pose.quaternion], 2)):
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for step in range(steps):
        placed, unit = pose(cloud)
        loss = (placed - measured).square().sum(dim=-1).mean()
        if stage == "rotation":
            loss = loss + 0.1 * rotation_log(unit).square().sum() + 0.01 * rotation_log(unit).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"distance {loss.item():.4f}, quaternion {[round(v, 3) for v in pose.quaternion.tolist()]}")
