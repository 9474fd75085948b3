"""A hyperspherical autoencoder samples around its mean; as it sharpens, a proposal's cosine is exactly one."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2,N7,N8 birth_op=aten::div,aten::mul
# label: kind=+inf,-inf,nan first_step=
# label: severity=error loss_stays_finite=yes dtype=fp32 model=vae family=von_mises_fisher needs= fragile=no
# label: thread=clementchadebec/benchmark_VAE#79 uses= fix_kind=clamp
# fix: 1 - w^2 is clamped to a small positive number before the root, as in the original sampler; the value is right
# fix: without it, the slope is not
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
LATENT = 5


def sample_around(mean, kappa):
    """Directions around `mean`, drawn by Ulrich's proposal and accepted as they are."""
    d = LATENT - 1
    root = torch.sqrt(4 * kappa.square() + d**2)
    b = d / (2 * kappa + root)
    z = torch.distributions.Beta(d / 2, d / 2).sample(kappa.shape)
    w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
    tangent = torch.randn_like(mean)
    tangent = tangent - (tangent * mean).sum(dim=-1, keepdim=True) * mean
    tangent = tangent / tangent.norm(dim=-1, keepdim=True)
    rest = 1 - w.square()
    if FIXED:
        rest = rest.clamp_min(1e-10)
    return w * mean + torch.sqrt(rest) * tangent  # BUG


class SphereVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.mean, self.kappa = nn.Linear(32, LATENT), nn.Linear(32, 1)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x, sharpness):
        hidden = self.body(x)
        kappa = 1 + sharpness * nn.functional.softplus(self.kappa(hidden))
        latent = sample_around(nn.functional.normalize(self.mean(hidden), dim=-1), kappa)
        return self.decoder(latent), kappa


torch.manual_seed(79)
model = SphereVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
basis = torch.randn(LATENT, 16)
for step in range(80):
    x = nn.functional.normalize(torch.randn(64, LATENT), dim=-1) @ basis
    reconstruction, kappa = model(x, sharpness=1.5**step)
    loss = (reconstruction - x).square().sum(dim=-1).mean() + 1e-4 * kappa.log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not model.kappa.weight.isfinite().all():
        break
print(f"bound {loss.item():.3f}")
