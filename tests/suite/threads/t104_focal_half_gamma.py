"""Binary focal loss with gamma 0.5: once a pixel is certain, the root of its remaining doubt has no slope."""
# label: phase=backward mechanism=SING category=N3 category_alt=N4,N5 birth_op=aten::pow kind=+inf first_step=64
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=segmentation_focal_gamma needs= fragile=no
# label: thread=kornia/kornia#918 uses= fix_kind=eps
# fix: the small number that protects the logarithms is added inside of the powers, too
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class BinaryFocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=0.5, eps=1e-8):
        super().__init__()
        self.alpha, self.gamma, self.eps = alpha, gamma, eps

    def forward(self, logits, target):
        p, guard = torch.sigmoid(logits), self.eps if FIXED else 0.0
        doubt = torch.pow(1 - p + guard, self.gamma)  # BUG
        belief = torch.pow(p + guard, self.gamma)  # BUG-ALT
        positive = -self.alpha * doubt * target * torch.log(p + self.eps)
        negative = -(1 - self.alpha) * belief * (1 - target) * torch.log(1 - p + self.eps)
        return (positive + negative).mean()


class RoadSegmenter(nn.Module):
    def __init__(self, channels=3, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, image):
        return self.head(self.body(image))


def tiles(count=4, size=24):
    """Aerial tiles in which roads are bright in the first channel: easy to tell."""
    road = (torch.rand(count, 1, size // 8, size // 8) < 0.3).float()
    road = nn.functional.interpolate(road, scale_factor=8)
    image = 0.1 * torch.randn(count, 3, size, size)
    image[:, :1] += road
    return image, road


torch.manual_seed(104)
model, criterion = RoadSegmenter(), BinaryFocalLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
for step in range(80):
    image, road = tiles()
    loss = criterion(model(image), road)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"focal loss {loss.item():.5f}")
