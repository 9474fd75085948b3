"""A causal transformer that continues counting sequences, token by token, by Adam with clipped gradients."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=140)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)
WORDS, LENGTH, WIDTH, HEADS = 11, 12, 32, 2


def text(count):
    """Sequences that count modulo 11, each from its own start in its own stride."""
    start, stride = torch.randint(0, WORDS, (2, count, 1))
    return (start + stride * torch.arange(LENGTH + 1)) % WORDS


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        hidden = F.relu(self.up(self.norm2(x)))
        return x + self.down(hidden)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(args.steps):
    batch = text(32)
    inputs, following = batch[:, :-1], batch[:, 1:]
    logits = model(inputs)
    loss = F.cross_entropy(logits.flatten(0, 1), following.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

model.eval()
held = text(300)
with torch.no_grad():
    guessed = model(held[:, :-1])[:, 3:].argmax(-1)
accuracy = (guessed == held[:, 4:]).float().mean()
print(f"accuracy {accuracy.item():.4f}")
