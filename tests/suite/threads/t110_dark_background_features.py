"""A perceptual loss on masked brain slices: features of the background are zero, and so is the root of their sum."""
# label: phase=backward mechanism=SING category=N3 category_alt=N4,N2 birth_op=aten::div kind=nan first_step=21
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=perceptual_normalise needs= fragile=no
# label: thread=Project-MONAI/MONAI#8982 uses=torchvision fix_kind=eps
# fix: the small number moves from behind the square root into it
import os

import torch
from torch import nn
from torchvision.models import vgg11

FIXED = os.environ.get("FIXED") == "1"


def normalise(features, eps=1e-8):
    """Unit length over the channels at every place."""
    power = features.square().sum(dim=1, keepdim=True)
    length = torch.sqrt(power + eps) if FIXED else torch.sqrt(power) + eps  # BUG
    return features / length


class PerceptualLoss(nn.Module):
    """Compares features before their rectifiers."""

    def __init__(self, stages=(1, 4)):
        super().__init__()
        layers = vgg11(weights=None).features[:stages[-1]]
        for layer in layers:
            layer.inplace = False
        bounds = (0, *stages)
        self.stages = nn.ModuleList(layers[a:b] for a, b in zip(bounds, bounds[1:])).requires_grad_(False).eval()

    def forward(self, reconstruction, image):
        a, b, total = reconstruction.repeat(1, 3, 1, 1), image.repeat(1, 3, 1, 1), 0.0
        for stage in self.stages:
            a, b = stage(a), stage(b)
            total = total + (normalise(a) - normalise(b)).square().sum(dim=1).mean()
        return total


class Autoencoder(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, width, 4, stride=2, padding=1), nn.SiLU(),
                                    nn.Conv2d(width, 4, 4, stride=2, padding=1))
        self.decode = nn.Sequential(nn.ConvTranspose2d(4, width, 4, stride=2, padding=1), nn.SiLU(),
                                    nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1))

    def forward(self, image, head):
        return self.decode(self.encode(image)) * head


def slices(count=4, size=32):
    """Noise inside of an ellipse, nothing around it; and the ellipse."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    axes = 0.4 + 0.3 * torch.rand(count, 2, 1, 1)
    head = ((x / axes[:, 0]).square() + (y / axes[:, 1]).square() < 1).float()[:, None]
    return head * (0.6 + 0.2 * torch.randn(count, 1, size, size)), head


torch.manual_seed(110)
model, perceptual = Autoencoder(), PerceptualLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(28):
    image, head = slices()
    reconstruction = model(image, head)
    loss = nn.functional.l1_loss(reconstruction, image)
    if step > 20:  # the perceptual term joins when shapes are there
        loss = loss + 0.1 * perceptual(reconstruction, image)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"reconstruction loss {loss.item():.4f}")
