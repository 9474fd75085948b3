"""A loss scaler that doubles too far: scaled half gradients overflow, the step is skipped."""
# label: tempts=scaler max_severity=none dtype=fp16 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
KIND = torch.device(DEVICE).type

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler(KIND, init_scale=2.0 ** 13, growth_interval=1)
features = torch.randn(32, 16).to(DEVICE)
targets = (10.0 * torch.randn(32, 4)).to(DEVICE)

scales = []
for step in range(8):
    opt.zero_grad(set_to_none=True)
    with torch.autocast(KIND, dtype=torch.float16):
        predicted = model(features)
    loss = F.mse_loss(predicted.float(), targets)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    scales.append(scaler.get_scale())
halved = sum(after < before for before, after in zip(scales, scales[1:]))
print(f"scaler: {halved} halvings, last scale {scales[-1]:.0f}, loss {loss.item():.3f}")
