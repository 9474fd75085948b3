"""A text encoder from a bfloat16 run is used in float16: the last matrix of a feed-forward layer leaves the range."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N7 birth_op=aten::mm,aten::matmul,aten::linear kind=+inf,-inf first_step=23
# label: severity=error loss_stays_finite=no dtype=fp16 model=transformer family=half_feed_forward needs= fragile=no
# label: thread=huggingface/transformers#20683 uses= fix_kind=dtype
# fix: the output matrix of the feed-forward layers, and with it the residual stream, is kept in float32
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        return self.weight * wide.to(self.weight.dtype)


class FeedForward(nn.Module):
    """Gated GELU without biases; the gate of a few tokens opens very far, as models trained in bfloat16 allow."""

    def __init__(self, width, inner):
        super().__init__()
        self.norm = RootMeanSquareNorm(width)
        self.gate, self.value, self.out = (nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False),
                                           nn.Linear(inner, width, bias=False))

    def forward(self, x):
        h = self.norm(x)
        h = nn.functional.gelu(self.gate(h)) * self.value(h)
        return x + self.out(h.to(self.out.weight.dtype))  # BUG


class Encoder(nn.Module):
    def __init__(self, vocabulary=50, width=32, depth=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(FeedForward(width, 96) for _ in range(depth))
        self.norm = RootMeanSquareNorm(width)
        with torch.no_grad():  # token 7 drives one unit of the second layer, as rare tokens do
            self.embed.weight[7] = 0
            self.embed.weight[7, 3] = 6.0
            for weight in (self.layers[1].gate.weight, self.layers[1].value.weight):
                weight[5] = 0
                weight[5, 3] = 12.0
            self.layers[1].out.weight[9, 5] = 60.0

    def forward(self, tokens):
        h = self.embed(tokens)
        for layer in self.layers:
            h = layer(h)
        return self.norm(h).mean(dim=1)


torch.manual_seed(118)
encoder = Encoder().half().requires_grad_(False)
if FIXED:
    for layer in encoder.layers:
        layer.out.float()
head = nn.Linear(32, 2)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
for step in range(30):
    tokens = torch.randint(8, 50, (16, 10))
    if step == 23:
        tokens[4, 2] = 7  # the first page with an emoji
    loss = nn.functional.cross_entropy(head(encoder(tokens).float()), (tokens[:, 0] > 28).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"classification loss {loss.item():.4f}")
