"""A DDPM with a cosine schedule samples after training; its first cumulative alpha is exactly 1."""
# label: phase=forward mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::div kind=nan first_step=40
# label: severity=warning loss_stays_finite=yes dtype=fp32 model=diffusion family=diffusion_cosine_schedule needs= fragile=no
# label: thread=Project-MONAI/MONAI#8427 uses= fix_kind=schedule
# fix: the cosine schedule clips its betas and computes the cumulative alphas from them, so that none is 1; the line of
# fix: the division in the sampler is not touched (the samples are only looked at, so a warning)
import math
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def cosine_alphas_cumprod(steps, s=8e-3):
    x = torch.linspace(0, steps, steps + 1)
    level = torch.cos((x / steps + s) / (1 + s) * math.pi / 2).square()
    level = level / level[0]
    if FIXED:
        betas = (1 - level[1:] / level[:-1]).clamp(1e-4, 0.9999)
        return torch.cumprod(1 - betas, dim=0)
    return level[:-1]  # BUG-ALT


class Sampler:
    def __init__(self, steps):
        self.steps, self.alphas_cumprod = steps, cosine_alphas_cumprod(steps)
        before = torch.cat([torch.ones(1), self.alphas_cumprod[:-1]])
        self.alphas = self.alphas_cumprod / before
        self.betas = 1 - self.alphas

    def noisy(self, clean, noise, t):
        level = self.alphas_cumprod[t][:, None]
        return level.sqrt() * clean + (1 - level).sqrt() * noise

    def step(self, predicted_noise, t, sample):
        """The mean of the posterior and, except at the end, its noise."""
        here = self.alphas_cumprod[t]
        before = self.alphas_cumprod[t - 1] if t > 0 else torch.tensor(1.0)
        clean = (sample - (1 - here).sqrt() * predicted_noise) / here.sqrt()
        clean = clean.clamp(-3, 3)
        share = torch.stack([before.sqrt() * self.betas[t], self.alphas[t].sqrt() * (1 - before)])
        share = share / (1 - here)  # BUG
        mean = share[0] * clean + share[1] * sample
        return mean + (self.betas[t].sqrt() * torch.randn_like(sample) if t > 0 else 0)


torch.manual_seed(101)
sampler = Sampler(60)
embed = nn.Embedding(60, 32)
net = nn.Sequential(nn.Linear(2 + 32, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam([*net.parameters(), *embed.parameters()], lr=2e-3)
for epoch in range(40):
    angle = torch.rand(128) * 2 * math.pi
    clean = torch.stack([angle.cos(), angle.sin()], dim=1)
    noise, t = torch.randn_like(clean), torch.randint(0, 60, (128,))
    loss = (net(torch.cat([sampler.noisy(clean, noise, t), embed(t)], dim=1)) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    sample = torch.randn(64, 2)
    for t in reversed(range(60)):
        when = torch.full((64,), t)
        sample = sampler.step(net(torch.cat([sample, embed(when)], dim=1)), t, sample)
print(f"loss {loss.item():.3f}, mean radius of the samples {sample.norm(dim=1).mean().item():.3f}")
