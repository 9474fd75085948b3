"""Count model of gene expression: an empty droplet has no counts at all, so its means are 0 and 0 log 0 is asked for."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N1 birth_op=aten::log kind=-inf first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=vae family=count_likelihood needs= fragile=no
# label: thread=cellarium-ai/cellarium-ml#215 uses= fix_kind=eps
# fix: a small number is added to the mean of the negative binomial (and to its dispersion) in the likelihood
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
GENES = 40


def negative_binomial_log_prob(counts, mean, theta):
    if FIXED:
        mean, theta = mean + 1e-8, theta + 1e-8
    total = torch.log(theta + mean)
    return (theta * (torch.log(theta) - total) + counts * (torch.log(mean) - total)  # BUG
            + torch.lgamma(counts + theta) - torch.lgamma(theta) - torch.lgamma(counts + 1))


class ExpressionVAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(GENES, 32), nn.ReLU(), nn.Linear(32, 2 * latent))
        self.decoder = nn.Linear(latent, GENES)
        self.log_theta = nn.Parameter(torch.zeros(GENES))

    def forward(self, counts):
        mean, log_std = self.encoder(torch.log1p(counts)).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * torch.exp(log_std.clamp(-5, 3))
        share = torch.softmax(self.decoder(z), dim=-1)
        rate = counts.sum(dim=-1, keepdim=True) * share
        fit = negative_binomial_log_prob(counts, rate, self.log_theta.exp()).sum(dim=-1)
        divergence = 0.5 * (mean.square() + log_std.exp().square() - 2 * log_std - 1).sum(dim=-1)
        return (divergence - fit).mean()


def cells(step, programs, size=32):
    counts = torch.poisson(programs[torch.randint(0, len(programs), (size,))])
    if step == 22:
        counts[5] = 0.0
    return counts


torch.manual_seed(215)
programs = torch.rand(4, GENES).mul(6).floor()
model = ExpressionVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(24):
    loss = model(cells(step, programs))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
print(f"bound {loss.item():.2f}")
