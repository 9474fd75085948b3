"""A vector-quantised autoencoder with averaged codes: most codes are never chosen, Laplace smoothing helps them."""
# label: tempts=zero-count max_severity=none dtype=fp32 needs= family=codebook_smoothing
# label: thread=zalandoresearch/pytorch-vq-vae#5 uses=
# why: the counts of unused codes decay to zero, the smoothed counts do not, so that no code is divided by zero; the
# why: question in the thread was what the smoothing is for
import torch
from torch import nn


class AveragedCodebook(nn.Module):
    def __init__(self, codes=64, width=8, decay=0.7, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        distance = torch.cdist(z, self.codes)
        chosen = distance.argmin(dim=1)
        quantised = self.codes[chosen]
        if self.training:
            with torch.no_grad():
                onehot = nn.functional.one_hot(chosen, len(self.codes)).float()
                self.count.lerp_(onehot.sum(dim=0), 1 - self.decay)
                self.total.lerp_(onehot.t() @ z, 1 - self.decay)
                whole = self.count.sum()
                smoothed = (self.count + self.eps) / (whole + len(self.codes) * self.eps) * whole
                self.codes.copy_(self.total / smoothed[:, None])
        commitment = (z - quantised).square().mean()
        return z + (quantised - z).detach(), commitment, chosen


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
        self.book = AveragedCodebook()
        self.decode = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        quantised, commitment, chosen = self.book(self.encode(x))
        return self.decode(quantised), commitment, chosen


torch.manual_seed(106)
model, centres = Autoencoder(), torch.randn(5, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(120):
    x = centres[torch.randint(0, 5, (64,))] + 0.1 * torch.randn(64, 16)
    output, commitment, chosen = model(x)
    loss = nn.functional.mse_loss(output, x) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, {len(chosen.unique())} of 64 codes in use, least {model.book.count.min().item():.1e}")
