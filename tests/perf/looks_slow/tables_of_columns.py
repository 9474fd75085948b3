"""Categories, each with a table of its own; and sequences, each as long as it is."""
import torch
from torch import nn

torch.manual_seed(0)
tables = nn.ModuleList([nn.Embedding(50, 4) for _ in range(24)])
out = nn.Linear(96, 1)
optimizer = torch.optim.SGD([*tables.parameters(), *out.parameters()], lr=0.05, foreach=True)
lengths = torch.randint(4, 40, (24,)).tolist()
for step in range(24):
    chosen = torch.randint(0, 50, (64, 24))
    x = torch.cat([table(chosen[:, column]) for column, table in enumerate(tables)], 1)
    noise = torch.randn(24, 40)
    means = torch.stack([noise[row, :length].mean() for row, length in enumerate(lengths)])
    loss = (out(x).squeeze(-1) - means.mean()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
