"""A vector-quantised autoencoder resumed late: counts of unused codes decay to exact zero."""
# label: tempts=ema max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
CODES, WIDTH = 8, 4


class Codebook(nn.Module):
    def __init__(self, decay=0.5, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        self.register_buffer("code", torch.randn(CODES, WIDTH))
        self.code[5:] += 100.0  # far from every input: never chosen
        count = torch.ones(CODES)
        count[5:] = torch.tensor([3e-45, 1e-44, 2e-38])  # after a long run
        self.register_buffer("count", count)
        self.register_buffer("total", self.code * self.count[:, None])

    def forward(self, x):
        index = torch.cdist(x, self.code).argmin(1)
        self.update(x.detach(), nn.functional.one_hot(index, CODES).to(x.dtype))
        quantised = self.code[index]
        return x + (quantised - x).detach(), (x - quantised.detach()).square().mean()

    @torch.no_grad()
    def update(self, x, chosen):
        self.count.mul_(self.decay).add_(chosen.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(chosen.t() @ x, alpha=1 - self.decay)
        size = self.count.sum()
        smooth = (self.count + self.eps) / (size + CODES * self.eps) * size
        used = self.count > self.eps
        self.code.copy_(torch.where(used[:, None], self.total / smooth[:, None], self.code))


torch.manual_seed(21)
encoder, decoder = nn.Linear(6, WIDTH).to(DEVICE), nn.Linear(WIDTH, 6).to(DEVICE)
codebook = Codebook().to(DEVICE)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for step in range(8):
    x = torch.randn(32, 6).to(DEVICE)
    quantised, commitment = codebook(encoder(x))
    loss = (decoder(quantised) - x).square().mean() + 0.25 * commitment
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"codebook: loss {loss.item():.3f}, {int((codebook.count == 0).sum())} codes died out")
