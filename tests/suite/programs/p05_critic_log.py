"""A Wasserstein critic (no sigmoid) under the log loss of the classic GAN: log of a negative."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2 birth_op=aten::log kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=gan family=log needs= fragile=no
import os

import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
DIM = 8


class Critic(nn.Module):
    """Odd function of the sample plus a bias; scores are unbounded, as Wasserstein critics are."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(DIM, DIM, bias=False)
        self.score = nn.Linear(DIM, 1)
        nn.init.eye_(self.hidden.weight)
        nn.init.constant_(self.score.weight, 0.4)
        nn.init.constant_(self.score.bias, 0.5)

    def forward(self, sample):
        return self.score(torch.tanh(self.hidden(sample)))


torch.manual_seed(5)
critic = Critic().to(DEVICE)
generator = nn.Sequential(nn.Linear(4, DIM), nn.Tanh()).to(DEVICE)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-4)

# curriculum: the spread of the real samples grows; every sample comes with its mirror image
for spread in (0.01, 0.05, 3.0, 3.0):
    half = (0.5 + torch.rand(16, DIM)) * spread
    real = torch.cat([half, -half]).to(DEVICE)
    with torch.no_grad():
        fake = 0.01 * generator(torch.randn(32, 4).to(DEVICE))

    loss_real = -torch.log(critic(real)).mean()  # BUG
    loss_fake = -torch.log(1 - critic(fake)).mean()
    loss_c = loss_real + loss_fake
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()

print("critic loss %.4f" % loss_c.item())
