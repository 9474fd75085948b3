"""A generative adversarial network with a gradient penalty, and a term against samples that are all alike.

The bug: one late batch of noise is all alike, and the derivative of the root is infinite where its deviation is zero.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


def penalty(critic, x):
    x = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()


def sameness(x):
    return 1 / (0.1 + x.var(0).sqrt().mean())  # BUG


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    generator = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.BatchNorm1d(32),
                              nn.LeakyReLU(0.2), nn.Linear(32, 2), nn.Tanh())
    critic = nn.Sequential(nn.Linear(2, 32, bias=False), nn.ReLU(), nn.Linear(32, 32, bias=False), nn.ReLU(),
                           nn.Linear(32, 1, bias=False))
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    c_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
    for step in range(STEPS):
        angle = torch.randint(8, (32,)) * (3.14159265 / 4)
        real = torch.stack([angle.cos(), angle.sin()], 1) * 0.7 + 0.02 * torch.randn(32, 2)
        fake = generator(torch.randn(32, 8)).detach()
        mix = torch.rand(32, 1)
        c_loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, mix * real + (1 - mix) * fake)
        c_optimizer.zero_grad()
        c_loss.backward()
        c_optimizer.step()
        if step % 2 == 0:
            noise = torch.randn(32, 8)
            if step == BUG_STEP:
                noise = noise[:1].expand(32, 8)
            made = generator(noise)
            g_loss = -critic(made).mean() + 0.1 * sameness(made)
            g_optimizer.zero_grad()
            g_loss.backward()
            g_optimizer.step()
    print(f"{c_loss.item():.9g} {g_loss.item():.9g} {sum(p.double().sum() for p in critic.parameters()).item():.17g}")


main()
