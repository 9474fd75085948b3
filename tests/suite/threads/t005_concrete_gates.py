"""Binary gates by a concrete relaxation at low temperature; a sample that is exactly 0 has no log probability."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N4,N5 birth_op=aten::log,aten::log1p kind=-inf
# label: first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=autoencoder family=concrete_sample needs= fragile=no
# label: thread=pytorch/pytorch#18254 uses= fix_kind=clamp
# fix: the relaxed sample is kept between eps and 1 - eps after the sigmoid
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
EPS = torch.finfo(torch.float32).eps


class ConcreteGate:
    """Relaxed Bernoulli gates with a logit and a temperature."""

    def __init__(self, logits, temperature):
        self.logits, self.temperature = logits, temperature

    def rsample(self):
        uniform = torch.rand_like(self.logits).clamp(EPS, 1 - EPS)
        logistic = torch.log(uniform) - torch.log1p(-uniform)
        gate = torch.sigmoid((self.logits + logistic) / self.temperature)
        return gate.clamp(EPS, 1 - EPS) if FIXED else gate

    def log_prob(self, gate):
        odds = torch.log(gate) - torch.log1p(-gate)  # BUG
        shifted = self.logits - self.temperature * odds
        density = shifted - 2 * nn.functional.softplus(shifted)
        return density + torch.log(torch.as_tensor(self.temperature)) - odds - 2 * torch.log1p(-gate)


class GatedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(20, 12), nn.Linear(12, 20)

    def forward(self, x, temperature):
        posterior = ConcreteGate(4 * self.encoder(x), temperature)
        prior = ConcreteGate(torch.zeros_like(posterior.logits), temperature)
        gate = posterior.rsample()
        divergence = posterior.log_prob(gate) - prior.log_prob(gate)
        return self.decoder(gate), divergence.sum(dim=-1).mean()


torch.manual_seed(18)
model = GatedAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(5):
    x = torch.randn(64, 20)
    reconstruction, divergence = model(x, temperature=0.05)
    loss = (reconstruction - x).square().sum(dim=-1).mean() + 0.01 * divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"negative bound {loss.item():.3f}")
