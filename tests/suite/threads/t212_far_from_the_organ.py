"""A boundary loss on a soft distance transform; a small field of view leaves pixels far from any mask."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2,N4 birth_op=aten::div,aten::mul kind=nan first_step=105
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=soft_distance_transform needs= fragile=no
# label: thread=kornia/kornia#4232 uses=kornia fix_kind=where
# fix: the logarithm is taken of ones where the convolution gives zero; what it gave there was replaced by zero before
import os

import torch
from kornia.filters import filter2d
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def soft_distance(mask, h=0.35, passes=5):
    """Of each pixel to the nearest part of the mask, found ring after ring."""
    offset = torch.tensor([1.0, 0.0, 1.0])
    kernel = torch.exp(-torch.hypot(offset[:, None], offset) / h)[None]
    boundary, distance = mask, torch.zeros_like(mask)
    for ring in range(passes):
        reached = filter2d(boundary, kernel, border_type="replicate")
        if FIXED:
            reached = torch.where(reached > 0, reached, torch.ones_like(reached))
        step = torch.nan_to_num(-h * torch.log(reached), posinf=0.0)  # BUG
        new = (step > 0).float()
        distance = distance + (ring + step) * new
        boundary = torch.where(new > 0, torch.ones_like(boundary), boundary)
    return distance


class Segmenter(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.SiLU(),
                                    nn.Conv2d(width, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, 1, 1))

    def forward(self, picture):
        return self.layers(picture)


def slices(step, count=4, size=20):
    """Bright discs, and the field of view; one scanner's is small."""
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre, view = 5 + 5 * torch.rand(count, 2, 1, 1), torch.ones(count, 1, size, size)
    organ = ((x - centre[:, 0]).square() + (y - centre[:, 1]).square() < 12).float()[:, None]
    if step == 105:
        view[2, :, :, 14:] = view[2, :, 14:] = 0.0
    return organ + 0.2 * torch.randn(count, 1, size, size), organ * view, view


torch.manual_seed(4232)
model = Segmenter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(110):
    picture, organ, view = slices(step)
    logits = model(picture)
    mask = torch.sigmoid(logits) * view
    loss = nn.functional.binary_cross_entropy_with_logits(logits, organ, weight=view)
    if step > 90:  # the shape is there, its boundary follows
        loss = loss + 0.02 * (mask * soft_distance(organ) + organ * soft_distance(mask)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, weights {sum(p.norm().item() for p in model.parameters()):.3f}")
