"""Velocity prediction with zero terminal SNR: the weight min(SNR, 5) / (SNR + 1) of the last step is exactly zero."""
# label: tempts=zero-weight max_severity=none dtype=fp32 needs= family=diffusion_velocity_weight
# label: thread=kohya-ss/sd-scripts#934 uses=
# why: one formula for the weight has no step in which zero is divided by zero; that a step of no signal does not count
# why: is what the weight says
import torch
from torch import nn

STEPS = 64


class ZeroTerminalSchedule:
    def __init__(self):
        root = torch.cumprod(1 - torch.linspace(1e-3, 0.2, STEPS), dim=0).sqrt()
        root = (root - root[-1]) * root[0] / (root[0] - root[-1])
        self.signal, self.noise = root, (1 - root.square()).sqrt()
        self.snr = root.square() / (1 - root.square())

    def noisy(self, clean, noise, t):
        return self.signal[t, None] * clean + self.noise[t, None] * noise

    def velocity(self, clean, noise, t):
        return self.signal[t, None] * noise - self.noise[t, None] * clean


class VelocityNet(nn.Module):
    def __init__(self, features=4, width=48):
        super().__init__()
        self.time, self.inp = nn.Embedding(STEPS, width), nn.Linear(features, width)
        self.out = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, features))

    def forward(self, x, t):
        return self.out(self.inp(x) + self.time(t))


torch.manual_seed(107)
schedule, model = ZeroTerminalSchedule(), VelocityNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(64):
    clean = torch.randn(16, 4).cumsum(dim=1) * 0.5
    noise = torch.randn_like(clean)
    t = (torch.arange(16) * 4 + step) % STEPS
    error = (model(schedule.noisy(clean, noise, t), t) - schedule.velocity(clean, noise, t)).square().mean(dim=1)
    snr = schedule.snr[t]
    loss = (snr.clamp(max=5.0) / (snr + 1) * error).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():  # from pure noise, by DDIM
    x = torch.randn(32, 4)
    for t in reversed(range(STEPS)):
        v = model(x, torch.full((32,), t))
        clean = schedule.signal[t] * x - schedule.noise[t] * v
        noise = schedule.noise[t] * x + schedule.signal[t] * v
        x = clean if t == 0 else schedule.signal[t - 1] * clean + schedule.noise[t - 1] * noise
print(f"velocity loss {loss.item():.4f}, deviation of the samples {x.std().item():.3f}")
