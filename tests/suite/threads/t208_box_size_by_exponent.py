"""A one-stage detector decodes width and height by an exponential function while the learning rate still warms up."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N4,N5 birth_op=aten::exp kind=+inf first_step=
# label: severity=error loss_stays_finite=no dtype=fp32 model=detector family=detection_size_exponent needs= fragile=no
# label: thread=ultralytics/yolov3#168 uses=torchvision fix_kind=structure
# fix: a sigmoid function, scaled and raised to a power, takes the place of the exponential: sizes get an upper bound
import os

import torch
from torch import nn
from torchvision.ops import box_convert, generalized_box_iou_loss

FIXED = os.environ.get("FIXED") == "1"
ANCHOR, CELL = 6.0, 8


class Detector(nn.Module):
    """One box per cell: its centre, its size, whether it is there."""

    def __init__(self, channels=16):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, channels, 8, stride=CELL), nn.LeakyReLU(0.1),
                                   nn.Conv2d(channels, channels, 3, padding=1), nn.LeakyReLU(0.1))
        self.out = nn.Conv2d(channels, 5, 1)

    def forward(self, picture):
        raw = self.out(self.trunk(picture)).permute(0, 2, 3, 1)
        rows, columns = torch.meshgrid(*(torch.arange(n) for n in raw.shape[1:3]), indexing="ij")
        centre = (torch.sigmoid(raw[..., :2]) + torch.stack([columns, rows], dim=-1)) * CELL
        if FIXED:
            size = ANCHOR * (2 * torch.sigmoid(raw[..., 2:4])).pow(3)
        else:
            size = ANCHOR * torch.exp(raw[..., 2:4])  # BUG
        return torch.cat([centre, size], dim=-1), raw[..., 4]


def scene(count=8, size=32):
    """A bright rectangle in each picture; its box as centre and size, and the cell that has to find it."""
    centre, extent = 8 + 16 * torch.rand(count, 2), 5 + 13 * torch.rand(count, 2)
    at = torch.arange(size) + 0.5
    inside = [(at - centre[:, k, None]).abs() < extent[:, k, None] / 2 for k in (0, 1)]
    picture = (inside[1][:, :, None] & inside[0][:, None, :]).float() + 0.1 * torch.randn(count, size, size)
    return picture[:, None], torch.cat([centre, extent], dim=1), (centre // CELL).long()


torch.manual_seed(170)
model = Detector()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 200))
for step in range(100):
    picture, box, cell = scene()
    boxes, there = model(picture)
    found = boxes[torch.arange(len(box)), cell[:, 1], cell[:, 0]]
    wanted = torch.zeros_like(there)
    wanted[torch.arange(len(box)), cell[:, 1], cell[:, 0]] = 1.0
    overlap = generalized_box_iou_loss(*(box_convert(b, "cxcywh", "xyxy") for b in (found, box)), reduction="mean")
    sizes = nn.functional.mse_loss(found[:, 2:] / ANCHOR, box[:, 2:] / ANCHOR)
    loss = overlap + sizes + nn.functional.binary_cross_entropy_with_logits(there, wanted)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1000.0)
    optimizer.step()
    warm_up.step()
print(f"detection loss {loss.item():.4f}")
