"""A denoiser on a GPU whose loss is taken where positions were hidden, over as many as there are."""
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 32)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
clean = torch.randn(16, 48, 32).to(device)
hidden = (torch.rand(60, 16, 48, 1) < 0.15).float().to(device)
for step in range(60):
    mask = hidden[step]
    output = model(clean * (1 - mask))
    count = mask.sum().clamp(min=1)
    loss = ((output - clean).square() * mask).sum() / (32 * count)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
