"""Attention that goes from sequence to sequence and from head to head."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.part = heads, width // heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, self.part).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        rows = []
        for i in range(batch):
            heads = []
            for h in range(self.heads):
                heads.append(torch.softmax(q[i, h] @ k[i, h].t() / self.part ** 0.5, -1) @ v[i, h])  # SLOW
            rows.append(torch.stack(heads))
        y = torch.stack(rows)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


model = nn.Sequential(nn.Embedding(32, 32), Attention(32, 4), nn.Linear(32, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    ids = torch.randint(0, 32, (16, 13))
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
