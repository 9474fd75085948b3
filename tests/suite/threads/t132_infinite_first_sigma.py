"""A student learns from a teacher's solver steps; with zero terminal SNR the solver's first sigma is infinite."""
# label: phase=data mechanism=DIV0 category=N5 category_alt=N2,N4 birth_op=aten::div kind=+inf first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=diffusion family=diffusion_infinite_sigma needs= fragile=no
# label: thread=huggingface/diffusers#7097 uses= fix_kind=schedule
# fix: the last cumulative alpha of the rescaled schedule is replaced by a tiny positive number, so that sigma is finite
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class EulerSchedule:
    def __init__(self, steps=50, zero_snr=True):
        betas = torch.linspace(0.02**0.5, 0.35**0.5, steps).square()
        level = torch.cumprod(1 - betas, dim=0)
        if zero_snr:
            root = level.sqrt()
            level = ((root - root[-1]) * root[0] / (root[0] - root[-1])).square()
            if FIXED:
                level[-1] = 2.0**-24
        self.sigmas = ((1 - level) / level).sqrt().flip(0)  # BUG

    def scaled(self, x, i):
        return x / (self.sigmas[i, None].square() + 1).sqrt()

    def step(self, x, noise, i):
        return x + (self.sigmas[i + 1, None] - self.sigmas[i, None]) * noise


class NoiseNet(nn.Module):
    def __init__(self, features=2, width=48, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.inp, self.out = nn.Linear(features, width), nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                                                      nn.Linear(width, features))

    def forward(self, x, i):
        return self.out(self.inp(x) + self.time(i))


torch.manual_seed(132)
schedule, teacher, student = EulerSchedule(), NoiseNet().requires_grad_(False), NoiseNet()
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
for step in range(48):
    # stratified over the solver's steps, from the end; the first one is reached last
    i = (torch.arange(7) * 7 - step % 49 - 1) % 49
    clean = torch.randn(7, 2) * 0.3 + 1
    x = clean + schedule.sigmas[i, None] * torch.randn_like(clean)
    with torch.no_grad():
        target = schedule.step(x, teacher(schedule.scaled(x, i), i), i)
    predicted = schedule.step(x, student(schedule.scaled(x, i), i), i)
    loss = nn.functional.huber_loss(predicted, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimizer.step()
print(f"distillation loss {loss.item():.5f}")
