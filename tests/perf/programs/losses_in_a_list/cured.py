"""A classifier on a GPU that keeps the loss of each step for its learning curve."""
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
samples = torch.randn(64, 32, 64).to(device)
answers = torch.randn(64, 32, 10).to(device)
curve = []
for step in range(60):
    output = model(samples[step % 64])
    loss = (output - answers[step % 64]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.detach())
curve = torch.stack(curve).tolist()
print(f"{curve[0]:.3f} {curve[-1]:.3f}")
