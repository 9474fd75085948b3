"""A translation network draws its weights ten times too wide; the standard deviation of its style overflows."""
# label: phase=forward mechanism=OVF category=N6 category_alt=N7,N2 birth_op=aten::exp kind=+inf first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=gan family=gan_initial_scale needs= fragile=no
# label: thread=sophiajw/HistAuGAN#4 uses= fix_kind=init
# fix: weights are drawn with a deviation of 0.02 instead of 0.2, as the original had it
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def draw(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
        nn.init.normal_(module.weight, std=0.02 if FIXED else 0.2)  # BUG-ALT
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class StyleEncoder(nn.Module):
    """Mean and logarithm of the variance of a picture's style."""

    def __init__(self, width=32, style=8):
        super().__init__()
        sizes = [3, width] + 6 * [2 * width]
        self.body = nn.Sequential(*[layer for a, b in zip(sizes, sizes[1:])
                                    for layer in (nn.Conv2d(a, b, 3, 2 if a < b else 1, 1), nn.LeakyReLU(0.2))])
        self.mean, self.log_variance = nn.Linear(2 * width, style), nn.Linear(2 * width, style)

    def forward(self, picture):
        h = self.body(picture).mean(dim=(2, 3))
        deviation = (0.5 * self.log_variance(h)).exp()  # BUG
        mean = self.mean(h)
        return mean + deviation * torch.randn_like(mean), mean, deviation


class Decoder(nn.Module):
    def __init__(self, style=8, width=16):
        super().__init__()
        self.start = nn.Linear(style, width * 16)
        self.body = nn.Sequential(nn.LeakyReLU(0.2), nn.ConvTranspose2d(width, width, 4, 4), nn.LeakyReLU(0.2),
                                  nn.Conv2d(width, 3, 3, padding=1), nn.Tanh())

    def forward(self, style):
        return self.body(self.start(style).unflatten(1, (-1, 4, 4)))


torch.manual_seed(4)
encoder, decoder = StyleEncoder(), Decoder()
encoder.apply(draw)
decoder.apply(draw)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-4, betas=(0.5, 0.999))
for step in range(4):
    picture = torch.rand(8, 3, 16, 16) * 2 - 1
    style, mean, deviation = encoder(picture)
    divergence = 0.5 * (mean.square() + deviation.square() - 1 - 2 * deviation.log()).sum(dim=1).mean()
    loss = nn.functional.l1_loss(decoder(style), picture) + 0.01 * divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
