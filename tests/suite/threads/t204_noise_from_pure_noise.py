"""A sampler is tuned through its own steps; from pure noise no prediction of the noise leads back."""
# label: phase=forward mechanism=DIV0 category=N5 category_alt=N2,N4 birth_op=aten::div kind=+inf,-inf,nan first_step=40
# label: severity=error loss_stays_finite=no dtype=fp32 model=diffusion family=diffusion_zero_snr_prediction needs= fragile=no
# label: thread=huggingface/diffusers#5103 uses=diffusers fix_kind=config
# fix: the scheduler's prediction type is velocity instead of noise, as the rescaled schedule asks for
import os

import torch
from diffusers import DDIMScheduler
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def zero_snr_schedule():
    return DDIMScheduler(num_train_timesteps=100, beta_start=0.001, beta_end=0.1, rescale_betas_zero_snr=True,
                         timestep_spacing="trailing", clip_sample=False, set_alpha_to_one=False,
                         prediction_type="v_prediction" if FIXED else "epsilon")  # BUG-ALT


class Denoiser(nn.Module):
    def __init__(self, features=2, width=64):
        super().__init__()
        self.time = nn.Embedding(100, width)
        self.inp = nn.Linear(features, width)
        self.out = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, features))

    def forward(self, x, t):
        return self.out(self.inp(x) + self.time(t))


def clean_points(count):
    angle = torch.rand(count) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


def denoising_loss(model, schedule):
    x, noise, t = clean_points(64), torch.randn(64, 2), torch.randint(0, 100, (64,))
    noisy = schedule.add_noise(x, noise, t)
    wanted = schedule.get_velocity(x, noise, t) if schedule.config.prediction_type == "v_prediction" else noise
    return nn.functional.mse_loss(model(noisy, t), wanted)


def sampling_loss(model, schedule):
    """How far points sampled in four steps are from the circle."""
    schedule.set_timesteps(4)
    x = torch.randn(32, 2)
    for t in schedule.timesteps:
        x = schedule.step(model(x, t.expand(len(x))), t, x).prev_sample  # BUG
    return (x.square().sum(dim=1) - 1).square().mean()


torch.manual_seed(5103)
model, schedule = Denoiser(), zero_snr_schedule()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(46):
    loss = denoising_loss(model, schedule) if step < 40 else sampling_loss(model, schedule)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"distance from the circle {loss.item():.4f}")
