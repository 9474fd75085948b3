"""Linear attention with a hand-written elu(x)+1 map whose exp branch sees large keys."""
# label: phase=forward mechanism=OVF category=N3 category_alt=N2 birth_op=aten::exp kind=+inf first_step=4
# label: severity=error loss_stays_finite=yes dtype=fp32 model=transformer family=where needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def feature_map(x):
    """elu(x) + 1, which is positive everywhere."""
    negative = torch.exp(x)  # BUG
    return torch.where(x <= 0, negative, x + 1.0)


class LinearAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = feature_map(self.query(x)), feature_map(self.key(x)), self.value(x)
        memory = k.transpose(1, 2) @ v
        norm = (q * k.sum(dim=1, keepdim=True)).sum(dim=-1, keepdim=True)
        return (q @ memory) / norm


class Tagger(nn.Module):
    def __init__(self, width=16, tags=5):
        super().__init__()
        self.attention = LinearAttention(width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tags)

    def forward(self, x):
        return self.head(self.norm(x + self.attention(x)))


torch.manual_seed(36)
sequences = torch.randn(5, 4, 9, 16)
sequences[4, 1] *= 5000.0
tags = torch.randint(5, (5, 4, 9))
model = Tagger().to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
criterion = nn.CrossEntropyLoss()
for x, tag in zip(sequences.to(DEVICE), tags.to(DEVICE)):
    loss = criterion(model(x).flatten(0, 1), tag.flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"tagger: last loss {loss.item():.4f}")
