"""A CNN on spectra: a batch is a list of numpy arrays that torch.tensor takes number by number."""
import numpy
import torch
from torch import nn

rng = numpy.random.default_rng(0)
torch.manual_seed(0)
spectra = [rng.random(256, dtype="float32") for _ in range(512)]
model = nn.Sequential(nn.Conv1d(1, 8, 7, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(504, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(60):
    chosen = [spectra[i] for i in rng.integers(0, 512, size=32)]
    x = torch.from_numpy(numpy.stack(chosen)).unsqueeze(1)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
