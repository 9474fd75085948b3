"""Contrastive training where the similarity of tag vectors says which items belong together; one item has no tag."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1,N2 birth_op=aten::div kind=nan first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=cosine_without_eps needs= fragile=no
# label: thread=google-deepmind/optax#946 uses=torchvision fix_kind=eps
# fix: the cosine similarity in the loss gets a smallest norm; items without tags are legal
import os

import torch
from torch import nn
from torchvision.ops import MLP

FIXED = os.environ.get("FIXED") == "1"
TAGS = 10


def cosine_matrix(a, eps):
    norm = a.square().sum(dim=-1, keepdim=True).sqrt().clamp_min(eps)
    unit = a / norm  # BUG
    return unit @ unit.T


class TagContrast(nn.Module):
    """Soft contrast: embeddings ought to be as similar as their tags are."""

    def __init__(self, temperature=0.2):
        super().__init__()
        self.temperature = temperature
        self.eps = 1e-6 if FIXED else 0.0

    def forward(self, embedding, tags):
        wanted = cosine_matrix(tags, self.eps) / self.temperature
        logits = cosine_matrix(embedding, self.eps) / self.temperature
        away = torch.eye(len(tags)) * 1e4
        return nn.functional.cross_entropy(logits - away, (wanted - away).softmax(dim=-1))


def batch(step, size=32):
    tags = (torch.rand(size, TAGS) < 0.3).float()
    tags[tags.sum(dim=1) == 0, 0] = 1.0
    if step == 22:
        tags[7] = 0.0  # a fresh upload nobody tagged
    return tags @ MIXING + 0.3 * torch.randn(size, 16), tags


torch.manual_seed(94)
MIXING = torch.randn(TAGS, 16)
encoder = MLP(16, [48, 24], activation_layer=nn.GELU)
criterion = TagContrast()
optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-3)
for step in range(24):
    features, tags = batch(step)
    loss = criterion(encoder(features), tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"contrast {loss.item():.4f}")
