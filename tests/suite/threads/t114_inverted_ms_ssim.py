"""Multi-scale SSIM of a reconstruction that is the negative of its image: a negative number to the power 0.0448."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2 birth_op=aten::pow kind=nan first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=ms_ssim_negative needs= fragile=no
# label: thread=jorge-pessoa/pytorch-msssim#2 uses= fix_kind=scale
# fix: both similarities are mapped from [-1, 1] into [0, 1] before they are raised to the weights of the scales
import os

import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
SCALE_WEIGHTS = torch.tensor([0.0448, 0.2856, 0.3001])


def ssim(a, b, window=5, c1=0.01**2, c2=0.03**2):
    """(mean similarity, mean contrast similarity)"""
    def blur(x):
        return F.avg_pool2d(x, window, stride=1)
    mean_a, mean_b = blur(a), blur(b)
    var_a, var_b = blur(a * a) - mean_a**2, blur(b * b) - mean_b**2
    covariance = blur(a * b) - mean_a * mean_b
    contrast = (2 * covariance + c2) / (var_a + var_b + c2)
    luminance = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
    return (luminance * contrast).mean(), contrast.mean()


def ms_ssim(a, b):
    similarities, contrasts = [], []
    for _ in SCALE_WEIGHTS:
        similarity, contrast = ssim(a, b)
        similarities.append(similarity)
        contrasts.append(contrast)
        a, b = F.avg_pool2d(a, 2), F.avg_pool2d(b, 2)
    similarities, contrasts = torch.stack(similarities), torch.stack(contrasts)
    if FIXED:
        similarities, contrasts = (similarities + 1) / 2, (contrasts + 1) / 2
    powers = contrasts ** SCALE_WEIGHTS  # BUG
    return powers[:-1].prod() * similarities[-1] ** SCALE_WEIGHTS[-1]  # BUG-ALT


class Denoiser(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, noisy):
        return torch.sigmoid(self.net(noisy))


def plates(step, count=4):
    """Scanned plates, noisy and clean; the archive's second half was printed as negatives, scanned as they are."""
    clean = F.interpolate(torch.rand(count, 1, 8, 8), scale_factor=5, mode="bilinear")
    noisy = clean + 0.1 * torch.randn_like(clean)
    return (1 - noisy if step >= 24 else noisy), clean


torch.manual_seed(114)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(34):
    noisy, clean = plates(step)
    output = model(noisy)
    loss = 0.16 * F.l1_loss(output, clean)
    if step >= 12:  # SSIM wants a rough picture first
        loss = loss + 0.84 * (1 - ms_ssim(output, clean))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"restoration loss {loss.item():.4f}")
