"""Box regression with targets log(w / anchor); an annotation of zero width becomes log 0."""
# label: phase=forward mechanism=DOM category=N1 category_alt=N2,N4 birth_op=aten::log kind=-inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=detector family=data needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class AnchorLoss(nn.Module):
    """Smooth L1 between predicted and encoded offsets, one anchor for each cell."""

    def __init__(self, anchors):
        super().__init__()
        self.register_buffer("anchors", anchors)

    def encode(self, boxes):
        shift = (boxes[..., :2] - self.anchors[:, :2]) / self.anchors[:, 2:]
        scale = torch.log(boxes[..., 2:] / self.anchors[:, 2:])  # BUG
        return torch.cat([shift, scale], dim=-1)

    def forward(self, predicted, boxes):
        return nn.functional.smooth_l1_loss(predicted, self.encode(boxes))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.offsets = nn.Linear(6 * 3 * 3, 4 * 4)

    def forward(self, image):
        return self.offsets(self.features(image)).view(-1, 4, 4)


def scene(index):
    """Four boxes (x, y, w, h) in an 8 x 8 image; the fourth scene holds a double click."""
    boxes = torch.tensor([[2.0, 2, 3, 2], [6, 2, 2, 2], [2, 6, 1, 3], [6, 6, 2, 4]])
    if index == 3:
        boxes[1, 2] = 0.0
    return torch.rand(1, 1, 8, 8), boxes[None]


torch.manual_seed(28)
anchors = torch.tensor([[2.0, 2, 4, 4], [6, 2, 4, 4], [2, 6, 4, 4], [6, 6, 4, 4]])
detector, criterion = Detector().to(DEVICE), AnchorLoss(anchors).to(DEVICE)
opt = torch.optim.Adam(detector.parameters(), lr=1e-3)
for index in range(5):
    image, boxes = (part.to(DEVICE) for part in scene(index))
    loss = criterion(detector(image), boxes)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("box loss %.4f" % loss.item())
