"""A diffusion model that samples before each step: what a round takes out, the next one starts from."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(24):
    betas = torch.linspace(0.01, 0.2, 30) + 0.001 * torch.rand(30)
    kept = (1 - betas).cumprod(0)
    with torch.no_grad():
        x, path = torch.randn(32, 8), torch.zeros(31, 32, 8)
        noise = torch.randn(30, 32, 8)
        for t in range(29, -1, -1):
            guess = model(torch.cat([x, betas[t].expand(32, 1)], 1))
            x = (x - betas[t] / (1 - kept[t]).sqrt() * guess) / (1 - betas[t]).sqrt() + betas[t].sqrt() * noise[t]
            path[t] = x
        path[30] = torch.randn(32, 8)
        for t in range(30):  # smoothed along the way
            path[t + 1] = path[t + 1] + 0.5 * (path[t] - path[t + 1])
    target = torch.randn(32, 8)
    loss = (model(torch.cat([path[0] + target, betas[:1].expand(32, 1)], 1)) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
