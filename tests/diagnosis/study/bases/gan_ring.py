"""A GAN that learns points on a ring; the error is the energy distance between its points and the ring's."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=500)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def ring(count):
    angle = 6.2832 * torch.rand(count, 1)
    return torch.cat([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


generator = nn.Sequential(
    nn.Linear(2, 48),
    nn.ReLU(),
    nn.Linear(48, 48),
    nn.ReLU(),
    nn.Linear(48, 2),
)
discriminator = nn.Sequential(
    nn.Linear(2, 48),
    nn.LeakyReLU(0.2),
    nn.Linear(48, 48),
    nn.LeakyReLU(0.2),
    nn.Linear(48, 1),
)
bce = nn.BCEWithLogitsLoss()
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(args.steps):
    real = ring(64)
    fake = generator(torch.randn(64, 2))
    opt_d.zero_grad()
    d_real = discriminator(real)
    d_fake = discriminator(fake.detach())
    d_loss = bce(d_real, ones) + bce(d_fake, zeros)
    d_loss.backward()
    opt_d.step()

    opt_g.zero_grad()
    judged = discriminator(fake)
    g_loss = bce(judged, ones)
    g_loss.backward()
    opt_g.step()

with torch.no_grad():
    made, true = generator(torch.randn(400, 2)), ring(400)
    between = torch.cdist(made, true).mean()
    within = torch.cdist(made, made).mean() + torch.cdist(true, true).mean()
print(f"error {(2 * between - within).item():.4f}")
