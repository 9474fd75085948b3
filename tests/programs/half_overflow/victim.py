"""A half-precision network with squared ReLU activations.

The fourth batch was not scaled: an activation of 600 is fine in float16, its square is 360000 and beyond the
largest value, 65504. The same program in float32 trains.
"""
import torch
from torch import nn


class SquaredRelu(nn.Module):
    """max(x, 0) squared."""

    def forward(self, x):
        positive = torch.relu(x)
        return positive * positive  # BUG


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 4), SquaredRelu(), nn.Linear(4, 1))
nn.init.constant_(model[0].weight, 0.5)
nn.init.constant_(model[2].weight, 0.25)
model = model.to(torch.float16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.015625)
batches = 1.0 + torch.rand(6, 8, 2)
batches[3, 4] = 600.0
for step, x in enumerate(batches):
    output = model(x.half()).squeeze(1).float()
    loss = nn.functional.smooth_l1_loss(output, x.prod(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}")
