"""A segmentation loss averaged over the pixels that are marked as foreground.

The fourth batch has no foreground, and the mean of nothing is NaN.
"""
import torch
from torch import nn


def foreground_loss(logits, target, foreground):
    """Mean squared error where the mask is set."""
    error = (logits - target).pow(2)
    return error[foreground].mean()  # BUG


torch.manual_seed(0)
model = nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.rand(6, 2, 1, 8, 8)
masks = torch.rand(6, 2, 1, 8, 8) > 0.5
masks[3] = False
for step in range(6):
    logits = model(images[step])
    loss = foreground_loss(logits, 1.0 - images[step], masks[step])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
