"""Music separation with a scale-invariant loss: a song in which one instrument never plays has a target of zeros."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1,N2 birth_op=aten::div kind=nan first_step=25
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=speech_si_sdr needs= fragile=no
# label: thread=csteinmetz1/auraloss#25 uses= fix_kind=eps
# fix: the small number in the ratio of energies is added to the energy of the target in the projection, too
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def si_sdr_loss(estimate, target, eps=1e-8):
    """Negative scale-invariant signal-to-distortion ratio in dB, over the last axis."""
    estimate = estimate - estimate.mean(dim=-1, keepdim=True)
    target = target - target.mean(dim=-1, keepdim=True)
    energy = target.square().sum(dim=-1, keepdim=True)
    guard = eps if FIXED else 0.0
    scale = (estimate * target).sum(dim=-1, keepdim=True) / (energy + guard)  # BUG
    projection = scale * target
    residual = estimate - projection
    ratio = projection.square().sum(dim=-1) / (residual.square().sum(dim=-1) + eps)
    return -10 * torch.log10(ratio + eps).mean()


class MaskNet(nn.Module):
    """Learned filter bank, a mask per source, and back."""

    def __init__(self, sources=2, filters=24):
        super().__init__()
        self.sources, self.filters = sources, filters
        self.encode = nn.Conv1d(1, filters, 16, stride=8)
        self.mask = nn.Sequential(nn.Conv1d(filters, 48, 3, padding=1), nn.PReLU(), nn.Conv1d(48, sources * filters, 1))
        self.decode = nn.ConvTranspose1d(filters, 1, 16, stride=8)

    def forward(self, mixture):
        code = self.encode(mixture[:, None])
        masks = torch.sigmoid(self.mask(code)).unflatten(1, (self.sources, self.filters))
        masked = (masks * code[:, None]).flatten(0, 1)
        return self.decode(masked).squeeze(1).unflatten(0, (len(mixture), self.sources))


def songs(step, count=3, samples=408):
    """(count, 2, samples): a bass line and a hissing cymbal; album 25 has an a cappella song."""
    time = torch.arange(samples) / 200
    bass = torch.sin(2 * torch.pi * (2 + 4 * torch.rand(count, 1)) * time)
    cymbal = 0.5 * torch.randn(count, samples).diff(prepend=torch.zeros(count, 1))
    stems = torch.stack([bass, cymbal], dim=1)
    if step == 25:
        stems[1, 1] = 0.0
    return stems


torch.manual_seed(107)
model = MaskNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(32):
    stems = songs(step)
    loss = si_sdr_loss(model(stems.sum(dim=1)), stems)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
print(f"loss {loss.item():.2f} dB")
