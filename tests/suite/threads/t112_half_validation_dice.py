"""A segmenter is validated in half precision at full resolution: the Dice loss sums a quarter of a million pixels."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N4 birth_op=aten::sum kind=+inf first_step=24
# label: severity=warning loss_stays_finite=yes dtype=fp16 model=cnn family=segmentation_half_dice needs= fragile=no
# label: thread=ultralytics/ultralytics#24554 uses= fix_kind=dtype
# fix: the probabilities and the sums of the Dice loss are float32; its formula stays. Only validation is in half, so
# fix: the bad value reaches the printed metric and the choice of the best epoch, not the training
import copy
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def dice_loss(logits, mask, smooth=1.0):
    probability = logits.softmax(dim=1)
    if FIXED:
        probability = probability.float()
    probability = probability.transpose(0, 1).flatten(1)
    target = nn.functional.one_hot(mask, logits.shape[1]).permute(3, 0, 1, 2).flatten(1).to(probability.dtype)
    overlap = (probability * target).sum(dim=1)  # BUG
    total = probability.sum(dim=1) + target.sum(dim=1)  # BUG-ALT
    return 1 - ((2 * overlap + smooth) / (total + smooth)).mean()


class Segmenter(nn.Module):
    def __init__(self, classes=3, width=8):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, stride=2), nn.ReLU(),
                                 nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(width, classes, 1))

    def forward(self, image):
        return nn.functional.interpolate(self.net(image), scale_factor=2, mode="nearest")


def scenes(count, size):
    """A sky that takes most of the picture, a road below, a car on it."""
    mask = torch.zeros(count, size, size, dtype=torch.long)
    mask[:, int(size * 0.8):] = 1
    mask[:, int(size * 0.85):int(size * 0.95), : size // 8] = 2
    image = nn.functional.one_hot(mask, 3).permute(0, 3, 1, 2).float() + 0.3 * torch.randn(count, 3, size, size)
    return image, mask


@torch.no_grad()
def validate(model):
    half = copy.deepcopy(model).half().eval()
    image, mask = scenes(6, 256)
    return dice_loss(half(image.half()), mask).item()


torch.manual_seed(112)
model, best = Segmenter(), None
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for _ in range(24):
        image, mask = scenes(4, 48)
        logits = model(image)
        loss = nn.functional.cross_entropy(logits, mask) + dice_loss(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    metric = validate(model)
    best = metric if best is None or metric < best else best
print(f"training loss {loss.item():.4f}, best validation dice loss {best:.4f}")
