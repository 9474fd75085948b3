"""Half precision with a loss scaler, and a penalty on the norm of a gate that starts at zero, written as a root.

The root's derivative at zero is infinite at any scale: the scaler halves its scale and skips the step, and so
it does each time. No loss is bad, and nothing is learned.
"""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
gate = nn.Parameter(torch.zeros(6))
optimizer = torch.optim.SGD([*model.parameters(), gate], lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 16)
x = torch.rand(32, 6)
y = x.sum(1, keepdim=True)
for step in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        predicted = model(x * (1 + gate))
    penalty = gate.square().sum().sqrt()  # BUG
    loss = (predicted.float() - y).square().mean() + 0.01 * penalty
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, f"{loss.item():.3f}", scaler.get_scale())
