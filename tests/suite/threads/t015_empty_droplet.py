"""Count model of gene expression: an empty droplet has no counts, so its means are 0 and 0 log 0 is asked for."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N1 birth_op=aten::log kind=-inf first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=vae family=count_likelihood needs= fragile=no
# label: thread=cellarium-ai/cellarium-ml#215 uses=lightning fix_kind=eps
# fix: a small number is added to the mean of the negative binomial (and to its dispersion) in the likelihood
import logging
import os
import warnings

import lightning
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
GENES = 40
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


def negative_binomial_log_prob(counts, mean, theta):
    if FIXED:
        mean, theta = mean + 1e-8, theta + 1e-8
    total = torch.log(theta + mean)
    return (theta * (torch.log(theta) - total) + counts * (torch.log(mean) - total)  # BUG
            + torch.lgamma(counts + theta) - torch.lgamma(theta) - torch.lgamma(counts + 1))


class ExpressionVAE(lightning.LightningModule):
    def __init__(self, latent=6):
        super().__init__()
        self.automatic_optimization = False
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

    def training_step(self, batch, _):
        self.last = self(batch[0])
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.last)
        optimizer.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


torch.manual_seed(215)
programs = torch.rand(4, GENES).mul(6).floor()
counts = torch.poisson(programs[torch.randint(0, 4, (24 * 32,))])
counts[22 * 32 + 5] = 0.0
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(counts), batch_size=32)
model = ExpressionVAE()
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, loader)
print(f"bound {model.last.item():.2f}")
