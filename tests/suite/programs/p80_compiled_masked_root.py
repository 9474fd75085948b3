"""Compiled magnitude of a spectrum: where() hides the root at zero, its slope is not hidden."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::div,aten::reciprocal,aten::mul kind=nan,+inf first_step=2
# label: severity=error loss_stays_finite=yes dtype=fp32 model=audio family=compile needs=compile fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@torch.compile
def magnitude(real, imag):
    power = real * real + imag * imag
    root = torch.sqrt(power)  # BUG
    return torch.where(power > 0, root, torch.zeros_like(root))


torch.manual_seed(23)
denoiser = nn.Linear(12, 12, bias=False).to(DEVICE)
optimizer = torch.optim.Adam(denoiser.parameters(), lr=1e-3)
clips = torch.randn(4, 8, 12)
clips[2, 3] = 0.0  # the third batch holds a silent frame
for frames in clips:
    real, imag = denoiser(frames.to(DEVICE)).chunk(2, -1)
    spectrum = magnitude(real, imag)  # BUG-ALT
    loss = nn.functional.l1_loss(spectrum, torch.ones_like(spectrum))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("p80 loss", loss.item())
