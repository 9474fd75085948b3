"""Rotation matrices from a network become quaternions; near a half turn the trace plus one rounds below zero."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N3,N8,N7 birth_op=aten::sqrt kind=nan first_step=
# label: severity=error loss_stays_finite=no dtype=fp32 model=resnet family=rotation_to_quaternion needs= fragile=no
# label: thread=kornia/kornia#1653 uses=torchvision fix_kind=eps
# fix: a small number is added to trace + 1 under the root; which branch is taken stays as it was
import os

import torch
from torch import nn
from torchvision.models import resnet18

FIXED = os.environ.get("FIXED") == "1"


def orthonormal(six):
    """A rotation matrix from two vectors, by Gram and Schmidt."""
    a, b = six[:, :3], six[:, 3:]
    first = nn.functional.normalize(a, dim=-1)
    second = nn.functional.normalize(b - (first * b).sum(dim=-1, keepdim=True) * first, dim=-1)
    return torch.stack([first, second, torch.linalg.cross(first, second)], dim=-1)


def to_quaternion(matrix):
    """(w, x, y, z); where the trace is too small the axis is read off the largest diagonal entry."""
    trace = matrix.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    inner = trace + 1.0
    if FIXED:
        inner = inner.clamp_min(0.0) + 1e-6
    scale = 2.0 * torch.sqrt(inner)  # BUG
    skew = torch.stack([matrix[:, 2, 1] - matrix[:, 1, 2], matrix[:, 0, 2] - matrix[:, 2, 0],
                        matrix[:, 1, 0] - matrix[:, 0, 1]], dim=-1)
    regular = torch.cat([0.25 * scale[:, None], skew / scale[:, None].clamp_min(1e-3)], dim=-1)
    return nn.functional.normalize(regular, dim=-1)


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = resnet18(num_classes=6, norm_layer=lambda channels: nn.GroupNorm(4, channels))

    def forward(self, images):
        return to_quaternion(orthonormal(self.backbone(images)))


torch.manual_seed(1653)
net = PoseNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
views = torch.randn(6, 3, 32, 32)
behind = torch.tensor([0.0, 0.0, 1.0, 0.0])  # all views are from behind: half a turn about y
for step in range(60):
    quaternion = net(views)
    loss = (1 - (quaternion @ behind).abs()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
print(f"pose loss {loss.item():.4f}")
