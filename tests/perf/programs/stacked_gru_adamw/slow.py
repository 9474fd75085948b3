"""Four small GRUs on sensors, each with its own weights; AdamW with a weight decay for some."""
import torch
from torch import nn

torch.manual_seed(0)
grus = nn.ModuleList([nn.GRU(4, 8, batch_first=True) for _ in range(4)])
head = nn.Linear(32, 1)
optimizer = torch.optim.AdamW([{"params": grus.parameters(), "weight_decay": 0.01},
                               {"params": head.parameters(), "weight_decay": 0.0}], lr=1e-3)
for step in range(60):
    series = torch.randn(4, 16, 4, 4)
    states = [gru(one)[0][:, -1] for gru, one in zip(grus, series)]
    loss = head(torch.cat(states, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # SLOW
print(f"{loss.item():.3f}")
