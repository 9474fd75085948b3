"""A decoder whose norms, rotations, masks and activations are written out as many small ops; constants are buffers."""
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.part = heads, width // heads
        self.before, self.behind = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        angle = torch.arange(length)[:, None] / 100 ** (torch.arange(0, self.part, 2) / self.part)
        self.register_buffer("cos", angle.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", angle.sin().repeat(1, 2), persistent=False)
        self.register_buffer("future", torch.ones(length, length).triu(1).bool(), persistent=False)

    @staticmethod
    def norm(x, gain):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gain

    def turned(self, x):
        left, right = x.chunk(2, -1)
        return x * self.cos + torch.cat([-right, left], -1) * self.sin

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, self.part).transpose(1, 2)
                   for part in self.qkv(self.norm(x, self.before)).chunk(3, -1))
        score = self.turned(q) @ self.turned(k).transpose(-2, -1) / self.part ** 0.5
        y = score.masked_fill(self.future, float("-inf")).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm(x, self.behind)
        y = self.gate(y)
        return x + self.down(y * torch.sigmoid(y) * self.up(y[..., :width]))


model = nn.Sequential(nn.Embedding(64, 32), Block(32, 4, 24), Block(32, 4, 24), nn.Linear(32, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(24):
    ids = torch.randint(0, 64, (8, 25))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
