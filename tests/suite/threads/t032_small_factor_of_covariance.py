"""A sequence autoencoder's prior covariance is scaled by a factor of 0.02; the determinant of 30 frames underflows."""
# label: phase=forward mechanism=DOM category=N5 category_alt=N4,N2 birth_op=aten::log kind=-inf first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=vae family=covariance_factor needs= fragile=no
# label: thread=SUTDBrainLab/MGP-VAE#2 uses= fix_kind=config
# fix: the factor of the covariance functions is set close to one in the configuration; the formula stays. A stable
# fix: log determinant would do as well, hence N4
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
FRAMES, LATENT = 30, 3
CONFIG = {"factor": 0.95 if FIXED else 0.02, "length": 0.6}


def prior_covariance(frames, factor, length):
    time = torch.arange(frames, dtype=torch.float32)
    return factor * torch.exp(-(time[:, None] - time[None]).abs() / length)


class SequenceVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.GRU(8, 2 * LATENT, batch_first=True), nn.Linear(LATENT, 8)
        self.register_buffer("covariance", prior_covariance(FRAMES, **CONFIG))

    def divergence(self, mean, log_variance):
        """KL of independent Gaussians to the prior, for each latent channel."""
        precision = torch.linalg.inv(self.covariance)
        trace = (precision.diagonal() * log_variance.exp().transpose(1, 2)).sum(dim=-1)
        fit = torch.einsum("bfl,fg,bgl->bl", mean, precision, mean)
        log_det = torch.log(torch.linalg.det(self.covariance))  # BUG
        return 0.5 * (trace + fit - FRAMES + log_det - log_variance.sum(dim=1)).sum(dim=-1).mean()

    def forward(self, frames):
        mean, log_variance = self.encoder(frames)[0].chunk(2, dim=-1)
        latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(latent), self.divergence(mean, log_variance)


torch.manual_seed(2)
model = SequenceVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    frames = torch.randn(8, FRAMES, 8).cumsum(dim=1) / FRAMES
    reconstruction, divergence = model(frames)
    loss = (reconstruction - frames).square().sum(dim=(1, 2)).mean() + 1e-3 * divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"bound {loss.item():.3f}")
