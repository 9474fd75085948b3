"""A sampler interpolates noise levels in log space; the last is zero, and the first entry wraps around."""
# label: tempts=nan-entry max_severity=warning dtype=fp32 needs= family=unread_schedule_entry
# label: thread=huggingface/diffusers#14374 uses=diffusers
# why: the entry that is no number is the one before the first step, which no step reads; samples are as they should be
import warnings

import torch
from diffusers import KDPM2DiscreteScheduler
from torch import nn

warnings.filterwarnings("ignore")


class Denoiser(nn.Module):
    def __init__(self, features=2, width=48):
        super().__init__()
        self.inp, self.out = nn.Linear(features + 1, width), nn.Linear(width, features)

    def forward(self, x, t):
        t = t.float().expand(len(x))[:, None] / 100
        return self.out(nn.functional.silu(self.inp(torch.cat([x, t], dim=1))))


torch.manual_seed(14374)
model = Denoiser()
schedule = KDPM2DiscreteScheduler(num_train_timesteps=100, beta_start=0.001, beta_end=0.1)  # INTENDED
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
levels = schedule.alphas_cumprod
for step in range(60):
    x, noise, t = torch.randn(64, 2) * 0.1 + 1.0, torch.randn(64, 2), torch.randint(0, 100, (64,))
    level = levels[t][:, None]
    loss = nn.functional.mse_loss(model(level.sqrt() * x + (1 - level).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
schedule.set_timesteps(6)  # INTENDED
x = torch.randn(64, 2) * schedule.init_noise_sigma
with torch.no_grad():
    for t in schedule.timesteps:
        x = schedule.step(model(schedule.scale_model_input(x, t), t), t, x).prev_sample
print(f"loss {loss.item():.4f}, samples at {x.mean().item():.2f}")
