"""A training under torch.profiler: prints whether it saw kernels of its own ops."""
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(32, 64, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for _ in range(5):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
kernels = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
own = [event for event in kernels if "numsan" not in event.name]
print("kernels seen", len(own) > 50, "ops seen", any(event.name == "aten::addmm" for event in profiler.events()))
