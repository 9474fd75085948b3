"""Segmentation with mask files whose foreground is 255: the cross entropy has no lower bound any more."""
# label: phase=forward mechanism=HYPER category=N1 category_alt=N4,N5 birth_op=aten::binary_cross_entropy_with_logits kind=-inf first_step=107
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=masks_not_scaled needs= fragile=no
# label: thread=milesial/Pytorch-UNet#78 uses=torchvision fix_kind=data
# fix: masks hold 0 and 1 when they reach the loss
import io
import os

import numpy as np
import torch
from PIL import Image
from torch import nn
from torchvision.transforms import functional as transforms

FIXED = os.environ.get("FIXED") == "1"


def scan(rng, size=16):
    """A disc in noise; picture and mask as the bytes of PNG files."""
    y, x = np.mgrid[:size, :size]
    disc = (x - rng.uniform(5, 11))**2 + (y - rng.uniform(5, 11))**2 < rng.uniform(6, 16)
    picture = np.clip(90 + 80 * disc + rng.normal(0, 15, (size, size)), 0, 255)
    files = []
    for array in (picture, disc * 255):
        file = io.BytesIO()
        Image.fromarray(array.astype(np.uint8)).save(file, "PNG")
        files.append(file)
    return files


def read(files):
    picture, mask = (transforms.pil_to_tensor(Image.open(file)).float() for file in files)
    if FIXED:
        mask = mask / 255
    return picture / 255, mask  # BUG-ALT


torch.manual_seed(78)
rng = np.random.default_rng(78)
data = [read(scan(rng)) for _ in range(64)]
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
                      nn.Conv2d(8, 1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=3e-5, momentum=0.9)
for step in range(120):
    pictures, masks = (torch.stack(part) for part in zip(*(data[(8 * step + i) % 64] for i in range(8))))
    loss = nn.functional.binary_cross_entropy_with_logits(model(pictures), masks)  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
