"""A Wasserstein GAN with gradient penalty (double backward), three critic steps to one."""
import torch
from state import show
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.LayerNorm(32), nn.Linear(32, 32),
                       nn.LeakyReLU(0.2), nn.utils.parametrizations.spectral_norm(nn.Linear(32, 1)))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))


def ring(count):
    """Points on a circle of radius 2."""
    angle = torch.rand(count) * 6.2831853
    return 2.0 * torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


def gradient_penalty(real, fake):
    """(|slope| - 1)^2 between real and made points, the square root kept from 0."""
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.square().sum(1) + 1e-12).sqrt() - 1.0).square().mean()


for step in range(50):
    for _ in range(3):
        real, fake = ring(32), generator(torch.randn(32, 4)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10.0 * gradient_penalty(real, fake)
        critic_optimizer.zero_grad()
        loss.backward()
        critic_optimizer.step()
    critic.requires_grad_(False)
    score = -critic(generator(torch.randn(32, 4))).mean()
    generator_optimizer.zero_grad()
    score.backward()
    generator_optimizer.step()
    critic.requires_grad_(True)
    if step % 10 == 9:
        print(step, loss.item(), score.item())
show(nn.ModuleList([generator, critic]))
