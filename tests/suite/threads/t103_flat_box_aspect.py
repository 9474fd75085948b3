"""CIoU for an anchor-free detector: the aspect ratio divides by the height of a predicted box, which a ReLU makes 0."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N3,N2 birth_op=aten::div kind=+inf first_step=23
# label: severity=error loss_stays_finite=no dtype=fp32 model=detector family=detection_ciou needs= fragile=no
# label: thread=ultralytics/yolov5#8546 uses= fix_kind=eps
# fix: a small number is added to the heights where the aspect ratio divides by them; the arctangent hides the infinity
# fix: in the forward pass, the gradient of the division brings it out (so N3 is defensible)
import math
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
EPS = 1e-7


def ciou_loss(left_top, right_bottom, gt_left_top, gt_right_bottom):
    """Boxes as distances from their location to the four sides: all of them contain it."""
    wh, gt_wh = left_top + right_bottom, gt_left_top + gt_right_bottom
    overlap_wh = torch.minimum(left_top, gt_left_top) + torch.minimum(right_bottom, gt_right_bottom)
    overlap = overlap_wh.prod(dim=1)
    iou = overlap / (wh.prod(dim=1) + gt_wh.prod(dim=1) - overlap + EPS)
    hull = torch.maximum(left_top, gt_left_top) + torch.maximum(right_bottom, gt_right_bottom)
    centre = (right_bottom - left_top - gt_right_bottom + gt_left_top) / 2
    distance = centre.square().sum(dim=1) / (hull.square().sum(dim=1) + EPS)
    w, h = wh.unbind(dim=1)
    gt_w, gt_h = gt_wh.unbind(dim=1)
    ratio = w / (h + EPS) if FIXED else w / h  # BUG
    v = 4 / math.pi**2 * (torch.atan(gt_w / (gt_h + EPS)) - torch.atan(ratio)).square()
    with torch.no_grad():
        alpha = v / (v - iou + 1 + EPS)
    return (1 - iou + distance + alpha * v).mean()


class BoxHead(nn.Module):
    def __init__(self, features, width=32):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(features, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.distances = nn.Linear(width, 4)
        nn.init.constant_(self.distances.bias, 1.0)

    def forward(self, x):
        return torch.relu(self.distances(self.tower(x))).split(2, dim=1)


def locations(step, count=48):
    """Features that tell the four distances; from step 20 on the data has power lines, long and hardly any height."""
    half = 0.5 + 1.5 * torch.rand(count, 2)
    if step >= 20:
        half[: count // 2] = torch.tensor([3.0, 1e-3])
    offset = 1 + 0.5 * (torch.rand(count, 2) - 0.5)
    features = torch.cat([half, offset, half * offset, torch.randn(count, 2) * 0.1], dim=1)
    return features, half * offset, half * (2 - offset)


torch.manual_seed(103)
head = BoxHead(8)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
for step in range(60):
    features, gt_left_top, gt_right_bottom = locations(step)
    left_top, right_bottom = head(features)
    loss = ciou_loss(left_top, right_bottom, gt_left_top, gt_right_bottom)
    loss = loss + (left_top - gt_left_top).abs().mean() + (right_bottom - gt_right_bottom).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"box loss {loss.item():.4f}")
