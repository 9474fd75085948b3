"""An autoencoder that adds losses up for the mean of an epoch, and with them all that their graphs hold."""
import torch
from torch import nn

torch.manual_seed(0)


def penalty(code):
    return code.sigmoid().tanh().exp().sqrt().mean()


model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = 0.0
for step in range(80):
    x = torch.randn(512, 256)
    output = model(x)
    loss = (output - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        total = total + penalty(model(x))
print(f"{float(total) / 80:.3f}")
