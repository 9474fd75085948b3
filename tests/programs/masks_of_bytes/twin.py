"""Cells are told from their background by a loss on single pixels; the masks are 0 and 1."""
import numpy
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits


def pictures(rng, number, size=12):
    """Grey pictures with a bright square, and the mask of the square."""
    masks = numpy.zeros((number, 1, size, size), numpy.uint8)
    for mask in masks:
        row, column = rng.integers(0, size - 4, 2)
        mask[0, row:row + 4, column:column + 4] = 255
    return (0.2 + masks / 510 + 0.05 * rng.standard_normal(masks.shape)).astype(numpy.float32), masks


rng = numpy.random.default_rng(3)
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
                      nn.Conv2d(8, 1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
for step in range(150):
    picture, mask = map(torch.from_numpy, pictures(rng, 8))
    target = mask.float() / 255
    loss = binary_cross_entropy_with_logits(model(picture), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
