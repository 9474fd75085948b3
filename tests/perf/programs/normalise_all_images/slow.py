"""A CNN whose loop normalises the whole set of images before it takes a batch of them."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
raw = torch.randint(0, 256, (256, 3, 32, 32)).float()
labels = torch.randint(0, 10, (256,))
mean, deviation = torch.tensor([125.3, 123.0, 113.9]).view(3, 1, 1), torch.tensor([63.0, 62.1, 66.7]).view(3, 1, 1)
model = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                      nn.Flatten(), nn.Linear(16, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(80):
    images = (raw - mean) / deviation  # SLOW
    rows = torch.randint(0, 256, (32,))
    loss = F.cross_entropy(model(images[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
