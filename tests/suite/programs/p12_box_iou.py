"""IoU loss of a detector head with ReLU sizes; an empty box meets an empty prediction."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N2,N1 birth_op=aten::div kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=detector family=div0 needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def area(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def pairwise_iou(a, b):
    """IoU of boxes (x0, y0, x1, y1), row by row."""
    top_left = torch.maximum(a[:, :2], b[:, :2])
    bottom_right = torch.minimum(a[:, 2:], b[:, 2:])
    size = (bottom_right - top_left).clamp(min=0)
    inter = size[:, 0] * size[:, 1]
    return inter / (area(a) + area(b) - inter)  # BUG


class BoxHead(nn.Module):
    """Centre is free, width and height pass through a ReLU."""

    def __init__(self, channels):
        super().__init__()
        self.centre = nn.Linear(channels, 2)
        self.size = nn.Linear(channels, 2)
        nn.init.constant_(self.size.weight, 0.2)
        nn.init.constant_(self.size.bias, 0.0)

    def forward(self, feature):
        centre, half = self.centre(feature), self.size(feature).relu()
        return torch.cat([centre - half, centre + half], dim=1)


torch.manual_seed(12)
head = BoxHead(8).to(DEVICE)
opt = torch.optim.Adam(head.parameters(), lr=1e-3)
for frame in range(4):
    feature = torch.rand(6, 8)
    target = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).repeat(6, 1)
    if frame == 2:
        feature[4] = -feature[4] - 1.0  # nothing there: all features off
        target[4] = 0.0
    boxes = head(feature.to(DEVICE))
    loss = (1 - pairwise_iou(boxes, target.to(DEVICE))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

print("iou loss %.4f" % loss.item())
