"""Attention over sentences of different length, with the padding masked by -inf.

The fourth batch holds an empty sentence. Every score of its rows is -inf, which is what a mask is meant to
be; the softmax of nothing but -inf is NaN.
"""
import torch
from torch import nn


class Attention(nn.Module):
    """One head, scores of padded keys masked away."""

    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x, padding):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[-1] ** 0.5
        weights = scores.masked_fill(padding[:, None, :], float("-inf")).softmax(-1)  # BUG
        return weights @ self.value(x)


class Tagger(nn.Module):
    """Scores a sentence by the attended first word."""

    def __init__(self):
        super().__init__()
        self.attention = Attention(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x, padding):
        return self.head(self.attention(x, padding)[:, 0])


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
lengths = torch.randint(1, 6, (6, 4))
lengths[3, 2] = 0
for step in range(6):
    padding = torch.arange(6)[None, :] >= lengths[step][:, None]
    logits = model(torch.randn(4, 6, 8), padding)
    loss = nn.functional.cross_entropy(logits, torch.randint(0, 2, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
