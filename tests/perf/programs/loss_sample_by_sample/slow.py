"""A metric learner whose loss goes from sample to sample."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(60):
    x = torch.randn(64, 64)
    near = x + 0.1 * torch.randn(64, 64)
    a, b = model(x), model(near)
    losses = []
    for i in range(64):
        losses.append(1 - F.cosine_similarity(a[i], b[i], dim=0))  # SLOW
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
