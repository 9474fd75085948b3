"""Cameras refine their rotations as matrices, compared as quaternions; at half a turn the trace plus one is zero."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::div kind=+inf,-inf,nan first_step=20
# label: severity=error loss_stays_finite=yes dtype=fp32 model=pose family=rotation_to_quaternion needs= fragile=no
# label: thread=kornia/kornia#1653 uses= fix_kind=eps
# fix: a small number is added to trace + 1 under the root; the value is right without it, the slope is not
import os

import torch
from torch import nn

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
        inner = inner + 1e-6
    scale = 2.0 * torch.sqrt(inner)  # BUG
    skew = torch.stack([matrix[:, 2, 1] - matrix[:, 1, 2], matrix[:, 0, 2] - matrix[:, 2, 0],
                        matrix[:, 1, 0] - matrix[:, 0, 1]], dim=-1)
    regular = torch.cat([0.25 * scale[:, None], skew / scale[:, None].clamp_min(1e-3)], dim=-1)
    return nn.functional.normalize(regular, dim=-1)


class Cameras(nn.Module):
    """A rotation for each camera, free to move."""

    def __init__(self):
        super().__init__()
        self.front = nn.Parameter(torch.tensor([[1.0, 0.1, 0.0, 0.0, 1.0, 0.2]]).repeat(6, 1) + 0.1 * torch.randn(6, 6))
        self.back = nn.Parameter(torch.tensor([[1.0, 0.0, 0.0, 0.0, -1.0, 0.0]]).repeat(2, 1))

    def forward(self, cameras):
        return to_quaternion(orthonormal(cameras))


torch.manual_seed(1653)
cameras = Cameras()
optimizer = torch.optim.Adam([cameras.front], lr=1e-2)
wanted = nn.functional.normalize(torch.tensor([1.0, 0.2, 0.1, 0.0]) + 0.1 * torch.randn(6, 4), dim=-1)
for step in range(21):
    loss = (1 - (cameras(cameras.front) * wanted).sum(dim=-1).abs()).mean()
    if step == 20:  # the two cameras at the back, which are set up as half a turn about x
        optimizer.add_param_group({"params": [cameras.back]})
        loss = loss + (1 - cameras(cameras.back)[:, 1].abs()).mean() - cameras(cameras.back)[:, 0].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"pose loss {loss.item():.4f}, back {[round(v, 3) for v in cameras.back[0].tolist()]}")
