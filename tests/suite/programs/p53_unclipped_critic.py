"""A Wasserstein GAN without clipping or penalty, lr 20: each half drives the other upwards."""
# label: phase=forward mechanism=HYPER category=N5 category_alt=N7 birth_op=aten::addmm kind=+inf,-inf,nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=gan family=divergence needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
NOISE, WIDTH = 4, 16


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(NOISE, WIDTH)
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, z):
        h = nn.functional.leaky_relu(self.hidden(z), 0.2)
        return self.out(h)  # BUG


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, WIDTH)
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x):
        h = nn.functional.leaky_relu(self.hidden(x), 0.2)
        return self.out(h)


torch.manual_seed(53)
generator, critic = Generator().to(DEVICE), Critic().to(DEVICE)
opt_g = torch.optim.SGD(generator.parameters(), lr=20.0)
opt_c = torch.optim.SGD(critic.parameters(), lr=20.0)
for step in range(8):
    real = (torch.randn(32, 2) + 2.0).to(DEVICE)
    z = torch.randn(32, NOISE).to(DEVICE)

    critic_loss = critic(generator(z).detach()).mean() - critic(real).mean()
    opt_c.zero_grad()
    critic_loss.backward()
    opt_c.step()

    generator_loss = -critic(generator(z)).mean()
    opt_g.zero_grad()
    generator_loss.backward()
    opt_g.step()
print(f"gan: critic {critic_loss.item():.4g} generator {generator_loss.item():.4g}")
