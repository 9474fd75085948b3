"""The penalty of victim.py with eps inside its root. A scale of 2**20 is too large at first: some steps are skipped."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
gate = nn.Parameter(torch.zeros(6))
optimizer = torch.optim.SGD([*model.parameters(), gate], lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 20)
x = torch.rand(32, 6)
y = x.sum(1, keepdim=True)
for step in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        predicted = model(x * (1 + gate))
    penalty = (gate.square().sum() + 1e-12).sqrt()
    loss = (predicted.float() - y).square().mean() + 0.01 * penalty
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, f"{loss.item():.3f}", scaler.get_scale())
