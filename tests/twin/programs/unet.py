"""A small diffusion U-Net: noise schedule, time embedding, EMA weights, sampling from noise."""
import copy
import math

import torch
from state import show
from torch import nn

STEPS = 32


def time_embedding(times, width):
    """Sines and cosines of the time at `width` / 2 frequencies."""
    rates = torch.exp(-math.log(10000.0) * torch.arange(width // 2) / (width // 2))
    angles = times[:, None].float() * rates[None, :]
    return torch.cat([angles.sin(), angles.cos()], 1)


class Block(nn.Module):
    """Two convolutions with group norms; the time shifts and scales the second."""

    def __init__(self, source, target, width=16):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, source), nn.SiLU(),
                                   nn.Conv2d(source, target, 3, padding=1))
        self.time = nn.Linear(width, 2 * target)
        self.norm = nn.GroupNorm(4, target)
        self.second = nn.Conv2d(target, target, 3, padding=1)
        nn.init.zeros_(self.second.weight)
        self.skip = nn.Conv2d(source, target, 1)

    def forward(self, x, time):
        scale, shift = self.time(time)[:, :, None, None].chunk(2, 1)
        hidden = self.norm(self.first(x)) * (1 + scale) + shift
        return self.second(nn.functional.silu(hidden)) + self.skip(x)


class UNet(nn.Module):
    """Down, attention in the middle, up with the skipped features."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16))
        self.enter = nn.Conv2d(1, 8, 3, padding=1)
        self.down = nn.ModuleList([Block(8, 16), Block(16, 16)])
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.up = nn.ModuleList([Block(32, 16), Block(24, 8)])
        self.leave = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x, times):
        time = self.embed(time_embedding(times, 16))
        outer = self.enter(x)
        inner = self.down[0](nn.functional.avg_pool2d(outer, 2), time)
        x = self.down[1](inner, time)
        flat = x.flatten(2).transpose(1, 2)
        x = x + self.attention(flat, flat, flat)[0].transpose(1, 2).reshape(x.shape)
        x = self.up[0](torch.cat([x, inner], 1), time)
        x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
        return self.leave(self.up[1](torch.cat([x, outer], 1), time))


torch.manual_seed(0)
shares = torch.cos((torch.arange(STEPS + 1) / STEPS + 0.008) / 1.008 * math.pi / 2) ** 2
betas = (1 - shares[1:] / shares[:-1]).clamp(max=0.999)  # the last one would be 1
kept = torch.cumprod(1 - betas, 0)
model = UNet()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(50):
    clean = torch.zeros(8, 1, 8, 8)
    clean[torch.arange(8), 0, torch.randint(0, 8, (8,))] = 1.0
    times = torch.randint(0, STEPS, (8,))
    noise = torch.randn_like(clean)
    share = kept[times][:, None, None, None]
    weight = (share / (1 - share)).clamp(max=5.0)
    guess = model(share.sqrt() * clean + (1 - share).sqrt() * noise, times)
    loss = (weight * (guess - noise) ** 2).mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.1)
    if step % 10 == 9:
        print(step, loss.item())
x = torch.randn(2, 1, 8, 8)
with torch.no_grad():
    for time in reversed(range(STEPS)):
        guess = average(x, torch.full((2,), time))
        x = (x - betas[time] / (1 - kept[time]).sqrt() * guess) / (1 - betas[time]).sqrt()
        x = x.clamp(-3, 3) + (betas[time].sqrt() * torch.randn_like(x) if time else 0.0)
show(model, x, *average.parameters())
