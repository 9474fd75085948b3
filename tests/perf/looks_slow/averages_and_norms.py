"""Averages of parameters, norms of gradients and limits of each, all in loops over parameters: also of parameters that
lie in one storage."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(12, 12) for _ in range(24)])
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
gradients, averages, at = torch.zeros_like(flat), flat.clone(), 0
for p in model.parameters():
    p.data = flat[at:at + p.numel()].view_as(p)
    p.grad = gradients[at:at + p.numel()].view_as(p)
    at += p.numel()
shadows = [averages[i * 156:i * 156 + 144] for i in range(24)]
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
for step in range(24):
    loss = (model(torch.randn(32, 12)) - 1).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    norms = torch.stack([p.grad.norm() for p in model.parameters()])
    for p in model.parameters():
        p.grad.clamp_(-1, 1)
        p.grad.div_(norms.max().clamp(min=1))
    optimizer.step()
    with torch.no_grad():
        for shadow, layer in zip(shadows, model):
            shadow.mul_(0.99).add_(layer.weight.flatten(), alpha=0.01)
