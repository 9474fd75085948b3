"""A classifier of byte images, normalised by given means and deviations that are cast to the type of the image."""
import torch
from torch import nn

MEAN, DEVIATION = [0.48, 0.46, 0.41], [0.27, 0.26, 0.28]


def normalised(image):
    """Less the mean, over the deviation, channel by channel."""
    mean, deviation = (torch.tensor(row).to(image.dtype).view(3, 1, 1) for row in (MEAN, DEVIATION))
    return (image - mean) / deviation  # BUG


def images(number):
    """Noise in three channels, one of which is brighter, as bytes; which one it is."""
    brighter = torch.randint(0, 3, (number,))
    image = torch.full((number, 3, 8, 8), 60.0)
    image[torch.arange(number), brighter] = 160.0
    return (image + 20 * torch.rand_like(image)).to(torch.uint8), brighter


torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    image, label = images(16)
    loss = nn.functional.cross_entropy(model(normalised(image)), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
