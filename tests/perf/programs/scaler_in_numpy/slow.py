"""A tabular regression that standardises each batch with means and deviations that numpy computed."""
import numpy
import torch
from torch import nn

rng = numpy.random.default_rng(0)
torch.manual_seed(0)
table = rng.normal(3.0, 2.0, size=(8192, 256)).astype("float32")
mean = torch.from_numpy(table.mean(0, dtype="float64"))
deviation = torch.from_numpy(table.std(0, dtype="float64"))
rows = torch.from_numpy(table)
model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(80):
    batch = rows[torch.randint(0, 8192, (1024,))]
    batch = (batch - mean) / deviation  # SLOW
    batch = batch.clamp(-3, 3)
    loss = model(batch.float()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
