"""A detector head is trained on one card with the learning rate of a schedule made for sixteen pictures on eight."""
# label: phase=forward mechanism=HYPER category=N5 category_alt=N7,N4 birth_op=aten::convolution,aten::mkldnn_convolution kind=+inf,-inf first_step=8
# label: severity=error loss_stays_finite=no dtype=fp32 model=detector family=detection_learning_rate needs= fragile=no
# label: thread=facebookresearch/detectron2#508 uses=torchvision fix_kind=config
# fix: the learning rate is scaled down by the ratio of pictures per step; nothing else changes
import os

import torch
from torch import nn
from torchvision.ops import FrozenBatchNorm2d, sigmoid_focal_loss

FIXED = os.environ.get("FIXED") == "1"
PICTURES_PER_STEP = 1
BASE_RATE, BASE_PICTURES = 0.16, 16


class DenseHead(nn.Module):
    """Class and box towers over a frozen normalisation, as backbones of detectors have it."""

    def __init__(self, channels=16, classes=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, channels, 5, stride=4, padding=2), FrozenBatchNorm2d(channels),
                                  nn.ReLU())
        self.tower = nn.Sequential(*(m for _ in range(3) for m in (nn.Conv2d(channels, channels, 3, padding=1),
                                                                  nn.ReLU())))
        self.score, self.box = nn.Conv2d(channels, classes, 1), nn.Conv2d(channels, 4, 1)

    def forward(self, picture):
        h = self.tower(self.stem(picture))  # BUG
        return self.score(h), self.box(h)  # BUG-ALT


def pictures(count, size=48):
    """A bright square somewhere, and for each cell its class and the distances to its sides in strides."""
    picture = torch.randn(count, 3, size, size) * 0.2
    label = torch.zeros(count, 3, size // 4, size // 4)
    distances = torch.zeros(count, 4, size // 4, size // 4)
    for i in range(count):
        x, y, side, kind = (int(v) for v in (torch.randint(0, 6, ()) * 4, torch.randint(0, 6, ()) * 4, 16,
                                             torch.randint(0, 3, ())))
        picture[i, kind, y:y + side, x:x + side] += 2.0
        rows, columns = torch.arange(y, y + side, 4), torch.arange(x, x + side, 4)
        label[i, kind, rows[:, None] // 4, columns // 4] = 1.0
        left, top = (columns - x + 2).expand(4, 4), (rows - y + 2)[:, None].expand(4, 4)
        box = torch.stack([left, top, side - left, side - top]) / 4
        distances[i, :, rows[:, None] // 4, columns // 4] = box
    return picture, label, distances


torch.manual_seed(130)
model = DenseHead()
rate = BASE_RATE * PICTURES_PER_STEP / BASE_PICTURES if FIXED else BASE_RATE
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)  # BUG-ALT
for step in range(60):
    picture, label, distances = pictures(PICTURES_PER_STEP)
    scores, boxes = model(picture)
    inside = label.amax(dim=1, keepdim=True)
    classification = sigmoid_focal_loss(scores, label, reduction="sum") / inside.sum()
    regression = (nn.functional.mse_loss(boxes, distances, reduction="none") * inside).sum() / inside.sum()  # BUG-ALT
    loss = classification + regression
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"detection loss {loss.item():.4f}")
