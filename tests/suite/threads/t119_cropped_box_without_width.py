"""Anchors are matched to boxes; a crop leaves one that ends before it begins, and the logarithm of its width is NaN."""
# label: phase=forward mechanism=DOM category=N1 category_alt=N4,N2 birth_op=aten::log kind=nan first_step=23
# label: severity=error loss_stays_finite=no dtype=fp32 model=detector family=detection_degenerate_box needs= fragile=no
# label: thread=pytorch/vision#1120 uses=torchvision fix_kind=data
# fix: boxes without width or height are dropped from the annotations (the library refuses them since)
import os

import torch
from torch import nn
from torchvision.models.detection._utils import BoxCoder
from torchvision.ops import box_iou

FIXED = os.environ.get("FIXED") == "1"
SIZE = 64.0


def crop(boxes, left, right):
    """What is left of the boxes in a vertical strip of the picture."""
    boxes = boxes.clone()
    boxes[:, 0], boxes[:, 2] = boxes[:, 0].clamp(min=left), boxes[:, 2].clamp(max=right)  # BUG-ALT
    if FIXED:
        boxes = boxes[(boxes[:, 2:] > boxes[:, :2]).all(dim=1)]
    return boxes


def picture(step):
    """Boxes with corners on whole pixels; picture 23 is cropped before one of them begins."""
    corner = torch.randint(0, 32, (6, 2)).float()
    boxes = torch.cat([corner, corner + torch.randint(6, 30, (6, 2))], dim=1)
    left, right = 0.0, SIZE
    if step == 23:
        boxes[0] = torch.tensor([40.0, 8.0, 52.0, 40.0])
        right = 38.0
    boxes = crop(boxes, left, right)
    canvas = torch.zeros(1, 1, int(SIZE), int(SIZE))
    for x1, y1, x2, y2 in boxes.long():
        canvas[0, 0, y1:y2, x1:x2] += 1
    return canvas + 0.05 * torch.randn_like(canvas), boxes


class RegionHead(nn.Module):
    """One anchor of 24 pixels at every cell of an 8 x 8 grid."""

    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 5, stride=4, padding=2), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU())
        self.score, self.delta = nn.Conv2d(width, 1, 1), nn.Conv2d(width, 4, 1)
        centre = (torch.stack(torch.meshgrid(torch.arange(8), torch.arange(8), indexing="xy"), dim=-1) + 0.5) * 8
        self.anchors = torch.cat([centre - 12, centre + 12], dim=-1).reshape(-1, 4)

    def forward(self, image):
        h = self.body(image)
        return self.score(h).flatten(), self.delta(h)[0].flatten(1).t()


torch.manual_seed(119)
head, coder = RegionHead(), BoxCoder((1.0, 1.0, 1.0, 1.0))
optimizer = torch.optim.SGD(head.parameters(), lr=0.02, momentum=0.9)
for step in range(30):
    image, boxes = picture(step)
    best, which = box_iou(boxes, head.anchors).max(dim=0)
    best[box_iou(boxes, head.anchors).argmax(dim=1)] = 1.0  # every box gets its best anchor
    which[box_iou(boxes, head.anchors).argmax(dim=1)] = torch.arange(len(boxes))
    found = best > 0.4
    target = coder.encode_single(boxes[which[found]], head.anchors[found])  # BUG
    scores, deltas = head(image)
    loss = nn.functional.binary_cross_entropy_with_logits(scores, found.float())
    loss = loss + nn.functional.smooth_l1_loss(deltas[found], target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"region loss {loss.item():.4f}")
