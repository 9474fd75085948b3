"""Batched evaluation and training with left padding: rows of padding may attend to nothing, and nobody reads them."""
# label: tempts=masked_rows max_severity=none dtype=fp32 needs= family=padding_rows_unused
# label: thread=allenai/OLMo#322 uses=
# why: fused attention gives zeros for such rows today, and rows of padding enter neither the loss nor other rows
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, allowed):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return x + self.out(y.transpose(1, 2).flatten(2))


class TinyCausal(nn.Module):
    def __init__(self, vocabulary=20, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, real):
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        bias = torch.zeros(len(tokens), 1, *causal.shape)
        bias = bias.masked_fill(~(causal & real[:, None, None, :]), float("-inf"))  # INTENDED
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, bias)
        return self.head(x)


torch.manual_seed(322)
model = TinyCausal()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(24):
    tokens = (torch.randint(0, 20, (8, 1)) + torch.arange(12)) % 20
    real = torch.arange(12) >= torch.randint(0, 6, (8, 1))
    logits = model(tokens[:, :-1], real[:, :-1])
    target = tokens[:, 1:].masked_fill(~real[:, :-1], -100)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"next token loss {loss.item():.4f}")
