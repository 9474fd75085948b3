"""A recommender on a GPU whose batch is a dictionary of forty columns, each moved on its own."""
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
table = {f"column{number}": torch.randn(512) for number in range(40)}
for step in range(60):
    rows = torch.randint(0, 512, (64,))
    batch = {name: column[rows].to(device) for name, column in table.items()}  # SLOW
    x = torch.stack(list(batch.values()), 1)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
