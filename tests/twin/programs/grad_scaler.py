"""Float16 autocast with a loss scale that starts too high: steps with overflowed gradients are skipped."""
import torch
from state import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 22, growth_interval=2)
skipped = 0
for step in range(20):
    x = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        output = model(x)
        loss = nn.functional.mse_loss(output.float(), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    before = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
    skipped += scaler.get_scale() < before
    print(step, loss.item(), scaler.get_scale())
print("taken", 20 - skipped, "skipped", skipped)
if not 0 < skipped < 20:
    raise SystemExit("this program is meant to skip some steps and to take others")
show(model)
