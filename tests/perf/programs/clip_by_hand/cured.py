"""A regression on a GPU that clips each parameter's gradient by hand."""
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda")
model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(48, 48), nn.Tanh())]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 48).to(device)
y = torch.randn(64, 48).to(device)
for step in range(60):
    loss = (model(x) - y).square().sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        norm = p.grad.square().sum().sqrt()
        p.grad.mul_((1.0 / norm).clamp(max=1.0))
    optimizer.step()
print(f"{loss.item():.3f}")
