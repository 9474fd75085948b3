"""Min-SNR weights for a diffusion model whose schedule was rescaled to end in pure noise: the last step's SNR is 0."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N5,N2 birth_op=aten::div kind=nan first_step=31
# label: severity=error loss_stays_finite=no dtype=fp32 model=diffusion family=diffusion_min_snr needs= fragile=no
# label: thread=TiankaiHang/Min-SNR-Diffusion-Training#4 uses= fix_kind=where
# fix: the weight of steps whose SNR is zero is set to one; the rescaled schedule stays (so N4, not N5)
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
STEPS, BATCH, GAMMA = 128, 4, 5.0


def zero_terminal(alphas_cumprod):
    """Shifts and scales sqrt(alpha_bar) so that the last step has no signal left."""
    root = alphas_cumprod.sqrt()
    root = (root - root[-1]) * root[0] / (root[0] - root[-1])
    return root.square()


class NoiseSchedule:
    def __init__(self, steps):
        betas = torch.linspace(8.5e-4**0.5, 0.2**0.5, steps).square()
        self.alphas_cumprod = zero_terminal(torch.cumprod(1 - betas, dim=0))
        self.snr = self.alphas_cumprod / (1 - self.alphas_cumprod)

    def add_noise(self, clean, noise, t):
        signal = self.alphas_cumprod[t].sqrt()[:, None]
        return signal * clean + (1 - self.alphas_cumprod[t]).sqrt()[:, None] * noise


class Denoiser(nn.Module):
    def __init__(self, features=6, width=48):
        super().__init__()
        self.time = nn.Embedding(STEPS, width)
        self.inp, self.mid, self.out = nn.Linear(features, width), nn.Linear(width, width), nn.Linear(width, features)

    def forward(self, noisy, t):
        h = nn.functional.silu(self.inp(noisy) + self.time(t))
        return self.out(nn.functional.silu(self.mid(h)))


def min_snr_weight(snr):
    clipped = snr.clamp(max=GAMMA)
    if FIXED:
        empty = snr == 0
        return torch.where(empty, 1.0, clipped / torch.where(empty, 1.0, snr))
    return clipped / snr  # BUG


torch.manual_seed(100)
schedule, model = NoiseSchedule(STEPS), Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
mixing = torch.randn(6, 6) * 0.4
for step in range(40):
    clean = torch.randn(BATCH, 6) @ mixing
    noise = torch.randn_like(clean)
    # stratified: one timestep from each quarter of the schedule
    t = torch.arange(BATCH) * (STEPS // BATCH) + step % (STEPS // BATCH)
    error = (model(schedule.add_noise(clean, noise, t), t) - noise).square().mean(dim=1)
    loss = (min_snr_weight(schedule.snr[t]) * error).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"weighted loss {loss.item():.4f}")
