"""A recommender with a large table of items, of which a batch reads few rows; Adam updates all of them."""
import torch
from torch import nn

torch.manual_seed(0)
items = nn.Embedding(20000, 16)
tower = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(items.parameters(), lr=1e-3)
other = torch.optim.Adam(tower.parameters(), lr=1e-3)
for step in range(60):
    chosen = torch.randint(0, 20000, (128,))
    loss = (tower(items(chosen)).squeeze(-1) - (chosen % 2)).square().mean()
    optimizer.zero_grad()
    other.zero_grad()
    loss.backward()
    other.step()
    optimizer.step()  # SLOW
print(f"{loss.item():.3f}")
