"""The half-precision network of victim.py with its inputs brought to unit scale first."""
import torch
from torch import nn


class SquaredRelu(nn.Module):
    """max(x, 0) squared."""

    def forward(self, x):
        positive = torch.relu(x)
        return positive * positive


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 4), SquaredRelu(), nn.Linear(4, 1))
nn.init.constant_(model[0].weight, 0.5)
nn.init.constant_(model[2].weight, 0.25)
model = model.to(torch.float16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.015625)
batches = 1.0 + torch.rand(6, 8, 2)
batches[3, 4] = 600.0
batches = batches / batches.amax(2, keepdim=True)
for step, x in enumerate(batches):
    output = model(x.half()).squeeze(1).float()
    loss = nn.functional.smooth_l1_loss(output, x.prod(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}")
