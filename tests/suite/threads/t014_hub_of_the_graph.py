"""A variational graph autoencoder on raw contact counts; a hub's log variance is large, its exponential infinite."""
# label: phase=forward mechanism=OVF category=N2 category_alt=N4,N7,N1 birth_op=aten::exp kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=log_variance needs= fragile=no
# label: thread=pyg-team/pytorch_geometric#500 uses= fix_kind=clamp
# fix: the encoder's log deviation is clamped from above before anything takes its exponential
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
LARGEST_LOG_STD = 10.0


class GraphEncoder(nn.Module):
    def __init__(self, features, hidden, latent):
        super().__init__()
        self.first, self.mean, self.log_std = (nn.Linear(features, hidden), nn.Linear(hidden, latent),
                                               nn.Linear(hidden, latent))

    def forward(self, x, adjacency):
        hidden = torch.relu(self.first(adjacency @ x))
        return self.mean(adjacency @ hidden), self.log_std(adjacency @ hidden)


class GraphVAE(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x, adjacency):
        mean, log_std = self.encoder(x, adjacency)
        if FIXED:
            log_std = log_std.clamp(max=LARGEST_LOG_STD)
        z = mean + torch.randn_like(mean) * torch.exp(log_std)  # BUG
        divergence = -0.5 * (1 + 2 * log_std - mean.square() - log_std.exp().square()).sum(dim=-1).mean()
        return z @ z.T, divergence


def interactions(proteins, hub_degree):
    """Counts of observed contacts, not normalised, with protein 0 as the hub."""
    counts = (torch.rand(proteins, proteins) < 0.08).float().triu(1)
    counts[0, 1:] = hub_degree * torch.rand(proteins - 1)
    return counts + counts.T + torch.eye(proteins)


torch.manual_seed(50)
model = GraphVAE(GraphEncoder(6, 16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.rand(30, 6)
for step, hub_degree in enumerate((0.3, 0.4, 0.3, 60.0)):  # cell lines; the last assay was read out far deeper
    adjacency = interactions(30, hub_degree)
    logits, divergence = model(x, adjacency)
    edges = nn.functional.binary_cross_entropy_with_logits(logits, (adjacency > 0).float())
    loss = edges + divergence / 30
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"edges {edges.item():.3f}, divergence {divergence.item():.3f}")
