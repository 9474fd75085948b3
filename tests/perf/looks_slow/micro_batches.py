"""Gradients of a batch that are added up part by part, each with a backward pass of its own, and parts through a model
whose batch norm keeps averages."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
normed = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8))
optimizer = torch.optim.SGD([*model.parameters(), *normed.parameters()], lr=0.01)
for step in range(24):
    x = torch.randn(160, 16)
    y = x.sum(1, keepdim=True)
    optimizer.zero_grad()
    for part in range(20):
        rows = slice(8 * part, 8 * part + 8)
        ((model(x[rows]) - y[rows]).square().mean() / 20).backward()
    torch.cat([normed(x[8 * part:8 * part + 8]) for part in range(20)]).square().mean().backward()
    optimizer.step()
