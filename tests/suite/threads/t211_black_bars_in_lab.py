"""A colourisation network is judged in the Lab colour space; a film with black bars has pixels of no light at all."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2,N4 birth_op=aten::pow,aten::mul kind=+inf,nan first_step=22
# label: severity=error loss_stays_finite=yes dtype=fp32 model=cnn family=colour_lab_cube_root needs= fragile=no
# label: thread=kornia/kornia#868 uses=kornia fix_kind=clamp
# fix: the cube root is taken of values that are kept above the threshold, which do not change the result
import os

import torch
from kornia.color import rgb_to_grayscale, rgb_to_xyz
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
THRESHOLD = (6 / 29)**3
WHITE = torch.tensor([0.95047, 1.0, 1.08883])[:, None, None]


def to_lab(picture):
    xyz = rgb_to_xyz(picture) / WHITE
    root = (xyz.clamp_min(THRESHOLD) if FIXED else xyz).pow(1 / 3)  # BUG
    f = torch.where(xyz > THRESHOLD, root, xyz * 7.787 + 4 / 29)  # BUG-ALT
    x, y, z = f.unbind(dim=1)
    return torch.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], dim=1)


class Colouriser(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.SiLU(),
                                    nn.Conv2d(width, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, 3, 1))

    def forward(self, grey):
        return torch.sigmoid(self.layers(grey)) * grey  # no light gets no colour


def frames(step, count=4, size=16):
    hue = torch.rand(count, 3, 1, 1)
    picture = (0.2 + 0.8 * torch.rand(count, 1, size, size)) * hue
    if step == 22:
        picture[1, :, :2] = 0.0
        picture[1, :, -2:] = 0.0
    return picture


torch.manual_seed(868)
model = Colouriser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(23):
    picture = frames(step)
    coloured = model(rgb_to_grayscale(picture))
    loss = nn.functional.l1_loss(to_lab(coloured), to_lab(picture)) / 10
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = sum(p.norm().item() for p in model.parameters())
print(f"colour loss {loss.item():.4f}, weights {weights:.3f}")
