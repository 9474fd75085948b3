"""Mixture density network: probabilities from a softmax, then their logarithm; a component that dies out reaches 0."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N3,N2 birth_op=aten::log kind=-inf first_step=
# label: severity=error loss_stays_finite=yes dtype=fp32 model=mlp family=mixture_density needs= fragile=no
# label: thread=tonyduan/mixture-density-network#4 uses= fix_kind=stable_function
# fix: log weights come from the logits directly instead of a logarithm of the softmax; the value of the loss is the
# fix: same,
# fix: as logsumexp hides the -inf, and only the gradient shows it, so N3 is arguable
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class MixtureDensityNet(nn.Module):
    def __init__(self, inputs, components):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU())
        self.weight, self.mean, self.log_std = (nn.Linear(24, components) for _ in range(3))

    def forward(self, x):
        hidden = self.body(x)
        return self.weight(hidden), 3 * torch.tanh(self.mean(hidden)), self.log_std(hidden).clamp(-3, 3)


def mixture_loss(logits, mean, log_std, y):
    if FIXED:
        log_weight = torch.log_softmax(logits, dim=-1)
    else:
        weight = torch.softmax(logits, dim=-1)
        log_weight = torch.log(weight)  # BUG
    log_density = torch.distributions.Normal(mean, log_std.exp()).log_prob(y[:, None])
    return -torch.logsumexp(log_weight + log_density, dim=-1).mean()


torch.manual_seed(44)
net = MixtureDensityNet(1, 3)
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(200):
    x = 2 * torch.rand(64, 1) - 1
    y = torch.where(x[:, 0] > 0, 2.0, -2.0) + 0.05 * torch.randn(64)
    x = 5 * x.sign() * (1 + x.abs() * step)  # the stage drives further out every round
    loss = mixture_loss(*net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not net.weight.weight.isfinite().all():
        break
print(f"nats {loss.item():.3f}, weights {net.weight.weight.norm().item():.3f}")
