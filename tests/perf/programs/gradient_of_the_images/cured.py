"""A CNN whose loop still asks for the gradient of its images, from the days when it drew saliency maps."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(16, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                      nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
images, labels = torch.rand(128, 16, 32, 32), torch.randint(0, 10, (128,))
for step in range(60):
    rows = torch.randint(0, 128, (16,))
    x = images[rows]
    loss = F.cross_entropy(model(x), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
