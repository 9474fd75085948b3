"""Images of which each is cut out at a place of its own: there is no op that does so for a batch."""
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
images = torch.rand(48, 3, 24, 24)
model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(324, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(24):
    noisy, cut = images + 0.01 * torch.randn(48, 3, 24, 24), torch.empty(48, 3, 20, 20)
    for i in range(48):
        y, x = random.randint(0, 4), random.randint(0, 4)
        cut[i] = noisy[i, :, y:y + 20, x:x + 20].clamp(0, 1)
    loss = model(cut).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
