"""A hand-written layer normalisation, deep inside an encoder.

It has no epsilon. The fifth batch holds an empty document: all features are 0, their variance is 0, and 1 /
sqrt(0) is infinite.
"""
import torch
from torch import nn


class Norm(nn.Module):
    """Layer normalisation with a learned scale."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        inverse = torch.rsqrt(variance)  # BUG
        return centred * inverse * self.scale


class Encoder(nn.Module):
    """Features, then two blocks; only the second is normalised."""

    def __init__(self):
        super().__init__()
        self.features = nn.Linear(6, 8, bias=False)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Tanh()), nn.Sequential(Norm(8), nn.Linear(8, 2))])

    def forward(self, x):
        x = self.features(x)
        for block in self.blocks:
            x = block(x)
        return x


torch.manual_seed(0)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = torch.rand(6, 10, 6)
batches[4, 3] = 0.0
for step, x in enumerate(batches):
    loss = nn.functional.cross_entropy(model(x), (x.sum(1) > 3.0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
