"""Near to ND116 and ND115: the labels of each loss are one number, and the generator goes up the loss of the
discriminator."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=0.002, betas=(0.5, 0.999))
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=0.002, betas=(0.5, 0.999))
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(100):
    real = 0.5 * torch.randn(64, 2) + torch.tensor([1.0, -1.0])
    made = generator(torch.randn(64, 4))
    loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
    loss = loss + F.binary_cross_entropy_with_logits(discriminator(made.detach()), zeros)
    of_discriminator.zero_grad()
    loss.backward()
    of_discriminator.step()
    loss = -F.binary_cross_entropy_with_logits(discriminator(made), zeros)
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
