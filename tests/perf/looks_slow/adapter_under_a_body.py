"""A prompt below a body that is not trained: the gradient has to go through all of it."""
import torch
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(*[layer for _ in range(3) for layer in (nn.Linear(256, 256), nn.GELU())])
body.requires_grad_(False)
prompt = nn.Parameter(torch.randn(256) / 16)
head = nn.Linear(256, 4)
optimizer = torch.optim.SGD([prompt, *head.parameters()], lr=0.05)
for step in range(24):
    loss = head(body(torch.randn(128, 256) + prompt)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
