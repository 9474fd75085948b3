"""Attention behind every kind of mask: causal and padded, sums of -inf, booleans, layers of torch and their fast path.

The bug: in one late step a query sees nothing, and a softmax of -inf alone is NaN.
"""
import torch
from loop import Loop, arguments
from torch import nn

args = arguments(9)
LENGTH, WIDTH = 12, 16


def additive(allowed):
    return torch.zeros(allowed.shape).masked_fill(~allowed, float("-inf"))


class ByHand(nn.Module):
    """Scores, a float mask of -inf, a softmax."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x, allowed):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / WIDTH ** 0.5 + additive(allowed)
        return x + scores.softmax(-1) @ v  # BUG


class Fused(nn.Module):
    """scaled_dot_product_attention with the mask as -inf or as booleans; rows that see nothing give zeros."""

    def __init__(self, as_floats):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.as_floats = as_floats

    def forward(self, x, allowed):
        q, k, v = (part.unflatten(2, (2, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        mask = additive(allowed)[:, None].to(q.dtype) if self.as_floats else allowed[:, None]
        out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1 * self.training)
        return x + out.transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self, words=20):
        super().__init__()
        self.embed = nn.Embedding(words, WIDTH)
        self.place = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.layers = nn.ModuleList([ByHand(), Fused(True), Fused(False)])
        self.torchs = nn.TransformerEncoderLayer(WIDTH, 2, 32, batch_first=True)
        self.pooled = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.head = nn.Linear(WIDTH, words)
        self.register_buffer("causal", torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())

    def forward(self, tokens, there, itself=True):
        """`itself`: padding sees itself, lest it see nothing where scores are made by hand."""
        x = self.embed(tokens) + self.place
        allowed = self.causal & there[:, None, :]
        seen = allowed | (torch.eye(LENGTH, dtype=torch.bool) if itself else False)
        for layer in self.layers:
            x = layer(x, seen if isinstance(layer, ByHand) else allowed)
        x = self.torchs(x, src_key_padding_mask=~there)
        context, _ = self.pooled(x.mean(1, keepdim=True), x, x, key_padding_mask=~there)
        return self.head(x + context)


def batch_of(count):
    """Sequences that count by threes, padded on the left."""
    there = torch.arange(LENGTH) >= torch.randint(0, LENGTH, (count, 1))
    tokens = (torch.randint(20, (count, 1)) + 3 * torch.arange(LENGTH)) % 20
    return tokens, there


def loss_of(judged, itself=True):
    tokens, there = batch_of(8)
    logits = judged(tokens, there, itself).float()
    each = nn.functional.cross_entropy(logits.flatten(0, 1), ((tokens + 3) % 20).flatten(), reduction="none")
    return (each * there.flatten()).sum() / there.sum()


model = Model()
loop = Loop(model, args, rate=3e-3)
for step in range(args.steps):
    with loop.autocast():
        loss = loss_of(model, itself=step != args.bug_step)
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
