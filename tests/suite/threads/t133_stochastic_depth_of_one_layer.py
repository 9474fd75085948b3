"""Stochastic depth rises linearly from layer to layer, l / (L - 1); a small encoder is configured with L = 1."""
# label: phase=forward mechanism=DIV0 category=N5 category_alt=N7,N2 birth_op=aten::div kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=stochastic_depth_rate needs= fragile=no
# label: thread=NVIDIA-NeMo/Speech#6120 uses= fix_kind=schedule
# fix: the probabilities go from 1 / L to the full rate, (l + 1) / L, which holds for any number of layers; that number
# fix: is the configuration's (so N5), the formula could be called unsafe (N2)
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def drop_probabilities(layers, rate):
    number = torch.arange(layers).float()
    if FIXED:
        return rate * (number + 1) / layers
    return rate * (number / (layers - 1))  # BUG


class ConvolutionBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.depthwise = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.pointwise = nn.Linear(width, width)

    def forward(self, x):
        h = self.depthwise(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return self.pointwise(nn.functional.silu(h))


class SpeechEncoder(nn.Module):
    def __init__(self, features=20, width=24, layers=1, stochastic_depth=0.2):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.blocks = nn.ModuleList(ConvolutionBlock(width) for _ in range(layers))
        self.register_buffer("drop", drop_probabilities(layers, stochastic_depth))

    def forward(self, frames):
        h = self.inp(frames)
        for block, drop in zip(self.blocks, self.drop):
            branch = block(h)
            if self.training:  # keep a sample's branch or not, and keep its mean
                kept = torch.rand(len(h), 1, 1) >= drop
                branch = branch * kept / (1 - drop)
            h = h + branch
        return h


torch.manual_seed(133)
encoder, head = SpeechEncoder(), nn.Linear(24, 8)
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=2e-3)
for step in range(12):
    phones = torch.randint(0, 8, (6, 15))
    frames = nn.functional.one_hot(phones, 20).float() + 0.2 * torch.randn(6, 15, 20)
    loss = nn.functional.cross_entropy(head(encoder(frames)).flatten(0, 1), phones.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"phone loss {loss.item():.4f}")
