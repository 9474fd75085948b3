"""Linear attention by exponentials of random projections, in half precision: their range is too narrow for it."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N2,N7 birth_op=aten::exp kind=+inf first_step=12
# label: severity=error loss_stays_finite=no dtype=fp16 model=transformer family=favor_features needs= fragile=no
# label: thread=facebookresearch/xformers#98 uses= fix_kind=dtype
# fix: the features are computed in single precision, whatever the type of queries and keys
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class RandomFeatures(nn.Module):
    def __init__(self, width, features=32):
        super().__init__()
        self.register_buffer("directions", torch.randn(width, features))

    def forward(self, x):
        if FIXED:
            x = x.float()
        projected = x @ self.directions.to(x.dtype)
        return (projected - 0.5 * x.square().sum(dim=-1, keepdim=True)).exp() + 1e-4  # BUG


class LinearAttention(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.features = RandomFeatures(width)

    def forward(self, x):
        query, key, value = (layer(x) for layer in (self.query, self.key, self.value))
        query, key = self.features(query), self.features(key)  # BUG-ALT
        context = key.transpose(1, 2) @ value.to(key.dtype)
        share = query @ key.sum(dim=1)[:, :, None]
        return ((query @ context) / share).to(x.dtype)


torch.manual_seed(98)
attention, head = LinearAttention(), nn.Linear(16, 4)
for layer in (attention.query, attention.key):
    nn.init.normal_(layer.weight, std=0.3)
inverse = torch.linalg.pinv(attention.key.weight.detach())
attention.half()
optimizer = torch.optim.SGD([*attention.parameters(), *head.parameters()], lr=1e-3)
for step in range(16):
    x = torch.randn(4, 10, 16)
    if step >= 12:
        # longer contexts come with larger position embeddings, whose keys lie along the longest direction
        directions = attention.features.directions.float()
        x[:, 0] = inverse @ (directions[:, directions.norm(dim=0).argmax()] - attention.key.bias.detach().float())
    logits = head(attention(x.half()).float().mean(dim=1))
    loss = nn.functional.cross_entropy(logits, (x[:, :, 0] > 0).sum(dim=1) % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
