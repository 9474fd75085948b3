"""torch.compile, the backend given on the command line: a training loop with its forward and backward compiled."""
import sys

import torch
from state import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
forward = torch.compile(model, backend=sys.argv[1])
for step in range(20):
    x = torch.randn(16, 8)
    loss = nn.functional.cross_entropy(forward(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
show(model)
